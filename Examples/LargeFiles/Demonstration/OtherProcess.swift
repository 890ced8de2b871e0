import Downpipe
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A second process of this program, which is killed.
enum OtherProcess {
  /// The second process: opens the files and prints the number of bytes of one of them whenever it changes.
  static func main(root: String, file: String) async throws {
    let files = try await LargeFiles(root)
    try await files.wait(for: DownloadID(file)) { status in
      FileHandle.standardOutput.write(Data("\(status.progress.received)\n".utf8))
      return false
    }
    await files.close()
  }

  /// Starts the program and sends it SIGKILL when the condition holds for the number of bytes that it prints.
  /// - Returns: The last number of bytes that it printed.
  @discardableResult
  static func run(
    _ program: URL, root: String, file: String, killedWhen condition: (Int64) async throws -> Bool
  ) async throws -> Int64 {
    let process = Process()
    process.executableURL = program
    process.arguments = ["transfer", root, file]
    process.standardInput = FileHandle.nullDevice
    let output = Pipe()
    process.standardOutput = output
    let (texts, text) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(16))
    output.fileHandleForReading.readabilityHandler = { handle in
      let data = handle.availableData
      if data.isEmpty { text.finish() } else { text.yield(String(decoding: data, as: UTF8.self)) }
    }
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in end.finish() }
    try process.run()
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    var bytes: Int64 = 0
    for await text in texts {
      guard let last = text.split(separator: "\n").last, let number = Int64(last) else { continue }
      bytes = number
      guard try await condition(bytes) else { continue }
      kill(process.processIdentifier, SIGKILL)
      break
    }
    output.fileHandleForReading.readabilityHandler = nil
    for await _ in ends {}
    return bytes
  }
}
