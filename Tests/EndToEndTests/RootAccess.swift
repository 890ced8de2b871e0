import DownpipeCore
import Foundation

/// The rights of tests that mount file systems or create network namespaces.
enum RootAccess {
  /// Whether these tests run. Without the rights they fail, so that a skipped test is not taken for a passed one;
  /// `DOWNPIPE_NO_ROOT=1` skips them.
  static let isExpected = ProcessInfo.processInfo.environment["DOWNPIPE_NO_ROOT"] != "1"
  /// The comment of a skipped test in the report.
  static let absence = "needs root, and DOWNPIPE_NO_ROOT=1 says that there is none"

  /// Runs a program of the system, such as `mount` or `ip`.
  /// - Throws: `DownloadError` that names the missing right.
  static func run(_ program: String, _ arguments: [String]) async throws {
    let outcome = try await Command(program, arguments).run()
    guard outcome.status == 0 else {
      throw DownloadError(
        .permission,
        "“\(program) \(arguments.joined(separator: " "))” was refused (\(outcome.status)): "
          + (outcome.errors.split(separator: "\n").first ?? "")
          + "; this test needs Linux and root, or DOWNPIPE_NO_ROOT=1 to be left out")
    }
  }
}
