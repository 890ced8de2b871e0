import ChildPipe
import Foundation
import Testing

/// Programs of the system that make signatures.
enum Programs {
  static func find(_ name: String) -> String? {
    ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(name)" }
      .first(where: FileManager.default.isExecutableFile(atPath:))
  }

  static let minisign = find("minisign")
  static let gpg = find("gpg")
  static let gpgv = find("gpgv")

  #if os(Linux) || os(macOS)
    /// Runs a program in a folder, which is its home, and expects that it succeeds.
    static func run(_ program: String?, _ arguments: [String], in folder: String) throws {
      let process = Process()
      process.executableURL = URL(filePath: try #require(program))
      process.arguments = arguments
      process.currentDirectoryURL = URL(filePath: folder)
      process.environment = ["HOME": folder, "GNUPGHOME": folder, "PATH": "/usr/bin:/bin", "LC_ALL": "C"]
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = FileHandle.nullDevice
      let errors = try ChildPipe()
      try process.run(errors: errors)
      let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      try #require(process.terminationStatus == 0, "\(program ?? ""): \(text)")
    }
  #endif
}
