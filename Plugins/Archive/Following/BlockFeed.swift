#if Archive
  import DownpipeGzip
  import DownpipePOSIX
  import Dispatch
  import Synchronization

  /// Bytes on their way from a transfer, which pushes them, to a reader on another thread, which pulls blocks.
  ///
  /// One piece is on its way at a time, and the transfer's side waits for room: what is kept in memory is bounded. The
  /// blocks have the sizes of those of a file, however the bytes arrive: a reader meets the same blocks in both, and so
  /// comes to the same result.
  final class BlockFeed: Sendable {
    private struct State {
      /// The piece that the reader has not taken yet.
      var piece: [UInt8] = []
      /// Whether there are no more bytes.
      var isComplete = false
      /// Whether one of the sides has ended.
      var isOver = false
    }

    private let state: Mutex<State>
    /// Has a signal while there is a piece, or the end of the bytes.
    private let filled = DispatchSemaphore(value: 0)
    /// Has a signal while there is room for a piece.
    private let emptied = DispatchSemaphore(value: 0)

    init() {
      var piece: [UInt8] = []
      piece.reserveCapacity(ArtifactBytes.blockSize)
      state = Mutex(State(piece: piece))
      emptied.signal()
    }

    /// Ends both sides: neither waits for the other any more.
    func end() {
      state.withLock { $0.isOver = true }
      emptied.signal()
      filled.signal()
    }

    // MARK: The transfer's side

    /// Hands bytes over, and waits while the reader has no room for them.
    ///
    /// - Returns: `false` if the reader has ended.
    func put(_ bytes: RawSpan) -> Bool {
      var rest = bytes
      while !rest.isEmpty {
        let part = rest.extracting(first: ArtifactBytes.blockSize)
        guard send({ state in part.withUnsafeBytes { state.piece.append(contentsOf: $0) } }) else { return false }
        rest = rest.extracting(droppingFirst: part.byteCount)
      }
      return true
    }

    /// Tells the reader that there are no more bytes.
    func complete() { _ = send { $0.isComplete = true } }

    private func send(_ change: (inout State) -> Void) -> Bool {
      emptied.wait()
      let isOver = state.withLock { state in
        if !state.isOver { change(&state) }
        return state.isOver
      }
      // At the end the signal stays, for the next call.
      if isOver { emptied.signal() } else { filled.signal() }
      return !isOver
    }

    // MARK: The reader's side

    /// Takes the next piece, which goes to `body`; `false` if there are no more.
    ///
    /// - Throws: `CancellationError` if the feed was ended.
    func take(_ body: (UnsafeRawBufferPointer) -> Void) throws -> Bool {
      filled.wait()
      let hasMore = state.withLock { state -> Bool? in
        if state.isOver { return nil }
        if state.isComplete { return false }
        state.piece.withUnsafeBytes(body)
        state.piece.removeAll(keepingCapacity: true)
        return true
      }
      guard let hasMore else {
        filled.signal()
        throw CancellationError()
      }
      emptied.signal()
      return hasMore
    }
  }

  /// The blocks of a ``BlockFeed``, for a reader on a thread of its own.
  final class FedBlocks: BlockSource {
    private let feed: BlockFeed
    /// Room for a block, and for the piece that completes it.
    private let buffer: UnsafeMutableRawBufferPointer
    /// The bytes in the buffer that belong to the block that was returned.
    private var taken = 0
    private var filled = 0
    private var isComplete = false
    /// The bytes that have arrived so far.
    private var byteCount: Int64 = 0

    init(_ feed: BlockFeed) {
      self.feed = feed
      buffer = .allocate(byteCount: 2 * ArtifactBytes.blockSize, alignment: 64)
    }

    deinit { buffer.deallocate() }

    /// More was unpacked than the limit on the ratio allows for the bytes that have arrived. It may be right for the whole
    /// file, which the step unpacks when it is there: the announced size may be a lie, and the rest may never come.
    struct AheadOfRatio: Error {}

    /// Checks output before it is written.
    ///
    /// - Parameter free: The output that the ratio always allows.
    func checkRatio(ofOutput count: Int64, _ ratio: Int64?, free: Int64) throws(AheadOfRatio) {
      guard count <= OutputLimit.most(ratio: ratio, free: free, input: byteCount) else { throw AheadOfRatio() }
    }

    /// The bytes are not all there.
    var seekableByteCount: Int64? { nil }

    func seek(to offset: Int64) {}

    func head() throws -> UnsafeRawBufferPointer {
      try fill(ArtifactBlocks.headSize)
      return UnsafeRawBufferPointer(rebasing: buffer[..<min(filled, ArtifactBlocks.headSize)])
    }

    func next() throws -> UnsafeRawBufferPointer {
      try fill(ArtifactBytes.blockSize)
      taken = min(filled, ArtifactBytes.blockSize)
      return UnsafeRawBufferPointer(rebasing: buffer[..<taken])
    }

    /// Waits until there are `count` bytes after those that were returned, or all that are left.
    private func fill(_ count: Int) throws {
      if taken > 0 {
        let rest = UnsafeRawBufferPointer(rebasing: buffer[taken..<filled])
        buffer.copyMemory(from: rest)
        filled -= taken
        taken = 0
      }
      while filled < count, !isComplete {
        let hasMore = try feed.take { piece in
          UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyMemory(from: piece)
          filled += piece.count
          byteCount += Int64(piece.count)
        }
        isComplete = !hasMore
      }
    }
  }
#endif
