public import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A pipe between the tests and one program that they start.
///
/// Foundation's `Pipe` is inherited by a program that another test starts at the same moment, and has no end before
/// that program ends, too.
public struct ChildPipe: Sendable {
  /// The end that a program reads as its input, or the tests read.
  public let fileHandleForReading: FileHandle
  /// The end that the tests write, or a program writes as its output.
  public let fileHandleForWriting: FileHandle

  /// - Throws: `POSIXError` if there are too many descriptors, or the folder for temporary files cannot be written.
  public init() throws {
    // A named pipe can be opened so that it is never inherited; `pipe` cannot, and Swift has no `pipe2`.
    let path = FileManager.default.temporaryDirectory.appending(path: "pipe-\(UUID().uuidString)").path
    guard mkfifo(path, 0o600) == 0 else { throw Self.error() }
    defer { unlink(path) }
    fileHandleForReading = try Self.open(path, O_RDONLY | O_NONBLOCK)
    fileHandleForWriting = try Self.open(path, O_WRONLY)
    // It was only opened without waiting for a writer.
    guard fcntl(fileHandleForReading.fileDescriptor, F_SETFL, 0) == 0 else { throw Self.error() }
  }

  private static func open(_ path: String, _ flags: CInt) throws -> FileHandle {
    #if canImport(Glibc)
      let descriptor = Glibc.open(path, flags | O_CLOEXEC)
    #elseif canImport(Darwin)
      let descriptor = Darwin.open(path, flags | O_CLOEXEC)
    #endif
    guard descriptor >= 0 else { throw error() }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  private static func error() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}

extension Process {
  /// Starts the program with its ends of pipes, and closes them here.
  public func run(input: ChildPipe? = nil, output: ChildPipe? = nil, errors: ChildPipe? = nil) throws {
    if let input { standardInput = input.fileHandleForReading }
    if let output { standardOutput = output.fileHandleForWriting }
    if let errors { standardError = errors.fileHandleForWriting }
    try run()
    try input?.fileHandleForReading.close()
    try output?.fileHandleForWriting.close()
    if let errors, errors.fileHandleForWriting !== output?.fileHandleForWriting {
      try errors.fileHandleForWriting.close()
    }
  }
}
