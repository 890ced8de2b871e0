import DownpipeCore
import Foundation
import Synchronization

/// Collects the chunks of a body, and how it pushes them.
final class ReceivedBody: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var firstChunk = 0
    var emptyChunks = 0
    var overlaps = 0
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let isBusy = Atomic(false)
  /// The maximum size, so that an endless body does not fill the memory.
  private let limit: Int

  /// Collects at most a little more than `limit` bytes.
  init(limit: Int) { self.limit = limit + 65_536 }

  var bytes: [UInt8] { state.withLock(\.bytes) }
  /// The size of the first chunk.
  var firstChunk: Int { state.withLock(\.firstChunk) }
  var emptyChunks: Int { state.withLock(\.emptyChunks) }
  var overlaps: Int { state.withLock(\.overlaps) }

  /// Marks the end of the body: later chunks count as overlaps.
  func end() { state.withLock { $0.hasEnded = true } }

  var sink: ChunkSink {
    { chunk in
      let wasBusy = self.isBusy.exchange(true, ordering: .acquiringAndReleasing)
      defer { self.isBusy.store(false, ordering: .releasing) }
      let bytes = chunk.withUnsafeBytes { [UInt8]($0) }
      try self.state.withLock { state in
        if state.bytes.isEmpty { state.firstChunk = bytes.count }
        if bytes.isEmpty { state.emptyChunks += 1 }
        if wasBusy || state.hasEnded { state.overlaps += 1 }
        state.bytes += bytes
        if state.bytes.count > self.limit { throw Deviation("the body has more than \(self.limit) bytes") }
      }
    }
  }

  /// Throws a ``Deviation`` with the position of the first byte that differs.
  func expectBytes(_ wanted: ArraySlice<UInt8>) throws {
    let bytes = bytes
    if sameBytes(bytes[...], wanted) { return }
    let same = zip(bytes, wanted).prefix { $0 == $1 }.count
    throw Deviation(
      "the body has \(bytes.count) bytes instead of \(wanted.count), and its first \(same) bytes are correct")
  }
}

/// Compares the arrays as memory, because unoptimized builds take seconds to compare megabytes element by element.
func sameBytes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
  left.count == right.count && Data(left) == Data(right)
}
