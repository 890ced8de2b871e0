import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a running download has on disk. Before its first checkpoint, a new download has no name there: tests of the
/// named partial wait for it.
enum Checkpoints {
  /// How many bytes are between two checkpoints.
  static let bytes: Int64 = 4 << 20
  /// A position after the first checkpoint, to hold a server at.
  static let passed: Int64 = 5 << 20
  /// How many bytes before the end of the partial are fetched again and compared when a download resumes.
  static let compared: Int64 = 65_536
  /// What a connection may bring beyond the end of its piece, because the ranges of segments have no end: one block.
  static let beyond: Int64 = 262_144

  /// Returns the first byte of the request that resumes after this many bytes.
  static func start(behind kept: Int64) -> Int64 { max(0, kept - compared) }

  /// Waits on the calling thread until a folder of partials has a named one.
  /// - Returns: its path; `nil` after the ``Swift/Duration/hangLimit``.
  static func namedPartial(in partials: String) -> String? {
    let end = ContinuousClock.now + .hangLimit
    while ContinuousClock.now < end {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: partials)) ?? []
      if let name = names.first(where: { $0.hasSuffix(".part") }) { return "\(partials)/\(name)" }
      usleep(100)
    }
    return nil
  }

  /// Returns when the first download of a ledger has a checkpoint: its partial has a name then.
  static func committed(_ ledger: String, of directory: String) async throws {
    let list = try Command.downpipe(["list", "-d", directory, "--ledger", ledger, "--json"])
    let end = ContinuousClock.now + .hangLimit
    while ContinuousClock.now < end {
      let listed = try await list.run()
      if let kept = listed.toolLines.first?.bytes, kept >= bytes { return }
    }
    Issue.record("there is no checkpoint in \(ledger)")
  }
}
