internal import Synchronization

/// Blocks of memory for bytes on their way to followers, shared by all transfers of a downloader.
///
/// Their number is limited: a thousand slow transfers with followers take no more memory than a few. A transfer that gets
/// no block lets its followers read from the partial.
final class BlockPool: Sendable {
  /// The bytes of a block; they fit in the cache of a core.
  static let blockSize = 256 << 10
  /// 24 MiB in all.
  private static let most = 96
  /// The number of blocks that are kept for the next transfer, so that one does not allocate with each block: 2 MiB.
  private static let mostKept = 8

  private struct State {
    var borrowed = 0
    var kept: [[UInt8]] = []
  }

  private let state = Mutex(State())

  /// Borrows an empty block with the capacity of ``blockSize``; `nil` if all are in use.
  func borrow() -> [UInt8]? {
    let (isFree, kept) = state.withLock { state -> (Bool, [UInt8]?) in
      guard state.borrowed < Self.most else { return (false, nil) }
      state.borrowed += 1
      return (true, state.kept.popLast())
    }
    guard isFree else { return nil }
    if let kept { return kept }
    var block: [UInt8] = []
    block.reserveCapacity(Self.blockSize)
    return block
  }

  /// Takes a block back. The caller must not have a copy of it, which would cost an allocation.
  func giveBack(_ block: consuming [UInt8]) {
    block.removeAll(keepingCapacity: true)
    let empty = block
    state.withLock { state in
      state.borrowed -= 1
      if state.kept.count < Self.mostKept { state.kept.append(empty) }
    }
  }

  /// Notes that blocks were released.
  func forget(_ count: Int) { state.withLock { $0.borrowed -= count } }

  /// The number of blocks in use.
  var borrowed: Int { state.withLock { $0.borrowed } }
}
