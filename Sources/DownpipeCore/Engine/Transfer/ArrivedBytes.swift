/// The latest bytes of a partial, kept in memory until followers have taken them, so that they need not be read.
///
/// They are one range: those that were written in order since the followers had taken everything before. If the followers
/// are slower than the line, the blocks become full, and later bytes are read from the partial, until the followers have
/// caught up.
struct ArrivedBytes: ~Copyable {
  /// The most blocks of one transfer: 4 MiB.
  private static let most = 16

  private let pool: BlockPool
  /// In order; only the last one may have room left.
  private var blocks: [[UInt8]] = []
  /// The position after the last byte.
  private(set) var end: Int64 = 0

  init(pool: BlockPool) { self.pool = pool }

  deinit { pool.forget(blocks.count) }

  var isEmpty: Bool { blocks.isEmpty }

  /// Appends bytes, as far as there is room. They must begin at ``end``, or anywhere if there are none.
  mutating func append(_ bytes: RawSpan, at offset: Int64) {
    if blocks.isEmpty { end = offset }
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        if blocks.last.map({ $0.count >= BlockPool.blockSize }) ?? true {
          guard blocks.count < Self.most, let block = pool.borrow() else { return }
          blocks.append(block)
        }
        let last = blocks.count - 1
        let part = rest.prefix(BlockPool.blockSize - blocks[last].count)
        blocks[last].append(contentsOf: UnsafeRawBufferPointer(rebasing: part))
        end += Int64(part.count)
        rest = rest.dropFirst(part.count)
      }
    }
  }

  /// Removes the first block, which the caller gives back to the pool; `nil` if there are no bytes.
  mutating func removeFirst() -> [UInt8]? { blocks.isEmpty ? nil : blocks.removeFirst() }

  /// Gives all blocks back to the pool.
  mutating func removeAll() {
    while let block = blocks.popLast() { pool.giveBack(block) }
  }
}
