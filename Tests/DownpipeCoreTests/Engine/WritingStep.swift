import DownpipeCore
import DownpipeTesting
import Foundation

/// A step that inverts each byte of a file, and whose follower writes the result while the bytes arrive.
final class WritingStep: PostProcessor {
  /// Writes inverted bytes to a file in the workspace.
  final class Follower: TransferFollower {
    let path: String
    private let limit: Int
    private let count = Watched(0)
    private let discards = Watched(0)

    init(in workspace: String, limit: Int) {
      path = workspace + "/following"
      self.limit = limit
      _ = FileManager.default.createFile(atPath: path, contents: nil)
    }

    /// Waits until it has taken a number of bytes.
    func taken(atLeast wanted: Int) async { await count.wait { $0 >= wanted } }
    var isDiscarded: Bool { discards.value > 0 }

    func take(_ bytes: RawSpan) throws {
      let handle = try FileHandle(forWritingTo: URL(filePath: path))
      defer { try? handle.close() }
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(bytes.withUnsafeBytes { $0.map { ~$0 } }))
      let total = count.update { count in
        count += bytes.byteCount
        return count
      }
      if total > limit { throw DownloadError(.noSpace, "the disk is full") }
    }

    func discard() {
      try? FileManager.default.removeItem(atPath: path)
      discards.update { $0 += 1 }
    }
  }

  let name: String
  let followerWrites = true
  private let limit: Int
  private let made = Watched<[Follower]>([])
  private let found = Watched<[Bool]>([])
  private let offered = Watched<[ProcessingContext]>([])

  init(name: String = "Invert", limit: Int = .max) {
    self.name = name
    self.limit = limit
  }

  var followers: [Follower] { made.value }
  /// For each call, whether a follower was in the context.
  var calls: [Bool] { found.value }
  /// The contexts in which a follower was asked for.
  var contexts: [ProcessingContext] { offered.value }

  /// Waits for a follower.
  func follower(_ index: Int = 0) async throws -> Follower {
    await made.wait { $0.count > index }
    try Task.checkCancellation()
    return made.value[index]
  }

  func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    offered.update { $0.append(context) }
    guard let workspace = context.workspace else { return nil }
    let follower = Follower(in: workspace, limit: limit)
    made.update { $0.append(follower) }
    return follower
  }

  func process(_ input: File, in context: ProcessingContext) async throws -> File {
    let follower = context.follower as? Follower
    found.update { $0.append(follower != nil) }
    guard let workspace = context.workspace else { return input }
    let output = "\(workspace)/\(name)"
    if let follower {
      try FileManager.default.moveItem(atPath: follower.path, toPath: output)
    } else {
      try Data(try input.artifact.readBytes().map { ~$0 }).write(to: URL(filePath: output))
    }
    return File(path: output, name: input.name)
  }
}
