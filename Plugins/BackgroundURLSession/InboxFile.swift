import DownpipeCore
import DownpipePOSIX
import Synchronization

/// A finished file in the inbox that was delivered to a reply.
///
/// It is deleted after it has been read to its end or discarded; a storage may also move it. If the last reference is
/// released before that, it stays for the next opening.
final class InboxFile: Sendable {
  let path: String
  private let onRelease: @Sendable (_ isConsumed: Bool) -> Void
  private let isConsumed = Atomic(false)
  private let isDiscarded = Atomic(false)
  private let isRead = Atomic(false)

  /// The size of the chunks, in bytes.
  static let chunkSize = 256 << 10

  init(_ path: String, onRelease: @escaping @Sendable (_ isConsumed: Bool) -> Void) {
    self.path = path
    self.onRelease = onRelease
  }

  deinit { onRelease(isConsumed.load(ordering: .acquiring)) }

  /// Marks the file as not needed: it is deleted when the last reference is released.
  func discard() {
    isConsumed.store(true, ordering: .releasing)
    isDiscarded.store(true, ordering: .relaxed)
  }

  /// The size of the file in bytes.
  /// - Throws: ``DownloadError`` when the file does not exist or cannot be opened.
  func size() throws -> Int64 {
    try reporting("open the finished file", path) { () throws(SystemError) in
      try FileSystem.system.status(Entry(path)).size
    }
  }

  /// The file as the body of a reply.
  var body: Body {
    Body(file: path, discard: { self.discard() }, push: { try await self.push(to: $0) })
  }

  private func push(to sink: @escaping ChunkSink) async throws {
    guard !isRead.exchange(true, ordering: .relaxed), !isConsumed.load(ordering: .acquiring) else {
      throw DownloadError(.cancelled, "the reply was discarded or has been read already")
    }
    try Task.checkCancellation()
    // Files block, and so may a sink; the threads of Swift's concurrency must not.
    try await BlockingThreads.run { cancellation in
      try reporting("read the finished file", self.path) {
        try OpenFile(reading: self.path, followingLink: false).forEachBlock(of: Self.chunkSize) { block, _ in
          try cancellation.check()
          if self.isDiscarded.load(ordering: .relaxed) { throw CancellationError() }
          try sink(block)
          return true
        }
      }
      self.isConsumed.store(true, ordering: .releasing)
    }
  }
}
