import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a download has on disk while it runs. A new one has no name there before its first checkpoint: tests that are
/// about the named partial wait for it.
enum Checkpoints {
  /// The bytes after which there is a checkpoint.
  static let bytes: Int64 = 4 << 20
  /// A place behind the first checkpoint, to hold a server at.
  static let passed: Int64 = 5 << 20
  /// The bytes before the end of the partial that going on fetches again, to compare them.
  static let compared: Int64 = 65_536

  /// The first byte that a download asks for which goes on behind so many.
  static func start(behind kept: Int64) -> Int64 { max(0, kept - compared) }

  /// Waits, on the calling thread, until a folder of partials holds one with a name.
  /// - Returns: its path; `nil` when there is none after half a minute.
  static func namedPartial(in partials: String) -> String? {
    let end = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < end {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: partials)) ?? []
      if let name = names.first(where: { $0.hasSuffix(".part") }) { return "\(partials)/\(name)" }
      usleep(100)
    }
    return nil
  }

  /// Returns once the first download of a ledger has a checkpoint: its partial has its name then.
  static func committed(_ ledger: String, of directory: String) async throws {
    let list = try Command.downpipe(["list", "-d", directory, "--ledger", ledger, "--json"])
    let end = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < end {
      let listed = try await list.run()
      if let kept = listed.toolLines.first?.bytes, kept >= bytes { return }
    }
    Issue.record("there is no checkpoint in \(ledger)")
  }
}
