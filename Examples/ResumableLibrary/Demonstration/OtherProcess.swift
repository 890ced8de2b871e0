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
  /// The second process: opens the library and prints the number of bytes of a film whenever it changes.
  static func main(root: String, film: Film) async throws {
    let library = try await Library(root)
    try await library.add(film)
    try await library.start(film.id)
    try await library.wait(for: film.id) { status in
      FileHandle.standardOutput.write(Data("\(status.progress.received)\n".utf8))
      return false
    }
    await library.close()
  }

  /// The arguments with which the program runs ``main(root:film:)``.
  static func arguments(root: String, film: Film) -> [String] {
    ["play", root, film.id.rawValue, film.url.absoluteString, film.name, film.type]
  }

  /// The film in such arguments; `nil` for other arguments.
  static func film(_ arguments: [String]) -> Film? {
    guard arguments.count == 6, arguments[0] == "play", let url = URL(string: arguments[3]) else { return nil }
    return Film(id: .init(arguments[2]), url: url, name: arguments[4], type: arguments[5])
  }

  /// Starts a program and sends it SIGKILL when the condition holds for the number that it prints.
  /// - Returns: The last number of bytes that it printed.
  @discardableResult
  static func run(
    _ program: URL, _ arguments: [String], killedWhen condition: (Int64) async throws -> Bool
  ) async throws -> Int64 {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
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
