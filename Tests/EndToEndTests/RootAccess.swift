import DownpipeCore
import Foundation

/// What tests say that mount file systems or make network namespaces.
enum RootAccess {
  /// Whether they run. Without the rights they need they fail, so that nobody takes silence for success;
  /// `DOWNPIPE_NO_ROOT=1` says that there are none here.
  static let isExpected = ProcessInfo.processInfo.environment["DOWNPIPE_NO_ROOT"] != "1"
  /// What the report says of those that did not run.
  static let absence = "needs root, and DOWNPIPE_NO_ROOT=1 says that there is none"

  /// Runs a program of the system, such as `mount` or `ip`.
  /// - Throws: `DownloadError` that says what is needed.
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
