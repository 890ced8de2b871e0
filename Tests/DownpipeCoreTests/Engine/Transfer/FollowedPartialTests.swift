import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// Which bytes of a partial can be read while others are written, and which changes are noticed.
@Suite(.endsHangs)
struct FollowedPartialTests {
  private let storage = FakeStorage()
  private let bytes = DownloadFixtures.pattern(size: 1000)

  private func partial(with ranges: ByteRangeSet = ByteRangeSet()) async throws -> FollowedPartial {
    let partial = FollowedPartial(
      try await storage.openPartial(PartialKey(id: "a", generation: 0), isNew: true), pool: BlockPool())
    for range in ranges.ranges { try put(range, into: partial) }
    partial.begin(with: ranges)
    return partial
  }

  private func put(_ range: ByteRange, into partial: FollowedPartial) throws {
    try partial.write(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]), at: range.lowerBound)
  }

  @Test func bytesCanBeClaimedUpToTheFirstGap() async throws {
    let partial = try await partial(with: ByteRangeSet(0..<100))
    #expect(partial.claim(from: 0, atMost: 60) == .stored(60))
    #expect(partial.claim(from: 60, atMost: 60) == .stored(40))
    #expect(partial.claim(from: 100, atMost: 60) == .nothing)
    try put(200..<300, into: partial)
    #expect(partial.claim(from: 100, atMost: 1000) == .nothing)
    try put(100..<200, into: partial)
    #expect(partial.claim(from: 100, atMost: 1000) == .arrived(Array(bytes[100..<200])))
    #expect(partial.claim(from: 200, atMost: 1000) == .stored(100))
    #expect(partial.isUnchanged)
    try partial.close()
  }

  @Test("a change of claimed bytes is noticed, a change of others is not", arguments: [(499, true), (500, false)])
  func changes(offset: Int64, isNoticed: Bool) async throws {
    let changes: [@Sendable (FollowedPartial) throws -> Void] = [
      { try $0.write([1], at: offset) },
      { try $0.truncate(to: offset) },
      { [storage] partial in
        let calls = storage.calls.count { $0.operation == .write }
        storage.fail(.write, at: calls + 1, with: DownloadError(.noSpace, "full"))
        #expect(throws: DownloadError.self) { try partial.write([1], at: offset) }
      },
    ]
    for change in changes {
      let partial = try await partial(with: ByteRangeSet(0..<1000))
      #expect(partial.claim(from: 0, atMost: 500) == .stored(500))
      try change(partial)
      #expect(partial.isUnchanged == !isNoticed)
      #expect((partial.claim(from: 500, atMost: 1) == .changed) == isNoticed)
      try partial.close()
    }
  }

  @Test func otherBytesInTheirPlaceAreNoticed() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write([1, 2, 3], to: "file")
    let partial = try await partial(with: ByteRangeSet(0..<100))
    #expect(partial.claim(from: 0, atMost: 1) == .stored(1))
    _ = try await partial.copy(file, count: 3)
    #expect(!partial.isUnchanged)
    try partial.close()
  }

  @Test func aNewBeginningForgetsEarlierChanges() async throws {
    let partial = try await partial(with: ByteRangeSet(0..<100))
    _ = partial.claim(from: 0, atMost: 10)
    try partial.truncate(to: 0)
    #expect(!partial.isUnchanged)
    partial.begin(with: ByteRangeSet())
    #expect(partial.isUnchanged)
    #expect(partial.claim(from: 0, atMost: 10) == .nothing)
    try partial.close()
  }

  // MARK: Bytes in memory

  /// Takes all that can be claimed, and how it came.
  private func drain(_ partial: FollowedPartial, from start: Int64 = 0) throws -> (bytes: [UInt8], read: Int64) {
    var (taken, read): ([UInt8], Int64) = ([], 0)
    while true {
      let position = start + Int64(taken.count)
      switch partial.claim(from: position, atMost: 1 << 20) {
      case .arrived(let block):
        taken += block
        partial.giveBack(block)
      case .stored(let count):
        taken += try partial.read(at: position, count: count)
        read += Int64(count)
      case .nothing, .changed: return (taken, read)
      }
    }
  }

  @Test func bytesInOrderAreNotRead() async throws {
    let pool = BlockPool()
    let base = try await storage.openPartial(PartialKey(id: "a", generation: 0), isNew: true)
    let partial = FollowedPartial(base, pool: pool)
    partial.begin(with: ByteRangeSet())
    let many = DownloadFixtures.pattern(size: 3 << 20, seed: 5)
    var taken: [UInt8] = []
    for start in stride(from: 0, to: many.count, by: 100_000) {
      try partial.write(Array(many[start..<min(start + 100_000, many.count)]), at: Int64(start))
      // The reader is sometimes behind.
      guard start % 300_000 == 0 else { continue }
      let (bytes, read) = try drain(partial, from: Int64(taken.count))
      taken += bytes
      #expect(read == 0)
    }
    taken += try drain(partial, from: Int64(taken.count)).bytes
    #expect(taken == many)
    #expect(storage.calls.allSatisfy { $0.operation != .read })
    #expect(pool.borrowed == 0)
    try partial.close()
  }

  @Test("a slow reader fills a bounded memory, reads what came later, and then gets bytes from memory again")
  func aSlowReader() async throws {
    let pool = BlockPool()
    let base = try await storage.openPartial(PartialKey(id: "a", generation: 0), isNew: true)
    let partial = FollowedPartial(base, pool: pool)
    partial.begin(with: ByteRangeSet())
    let many = DownloadFixtures.pattern(size: 6 << 20, seed: 6)
    func write(_ range: Range<Int>) throws {
      for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 16) {
        try partial.write(Array(many[start..<min(start + 1 << 16, range.upperBound)]), at: Int64(start))
      }
    }
    try write(0..<5 << 20)
    #expect(pool.borrowed == 16)
    let (first, read) = try drain(partial)
    #expect(first == Array(many[..<(5 << 20)]))
    #expect(read == 1 << 20)
    #expect(pool.borrowed == 0)
    try write(5 << 20..<6 << 20)
    let (second, again) = try drain(partial, from: 5 << 20)
    #expect(second == Array(many[(5 << 20)...]))
    #expect(again == 0)
    // Without a reader nothing is kept.
    partial.endReading()
    try partial.write([1, 2, 3], at: 6 << 20)
    #expect(pool.borrowed == 0)
    try partial.close()
  }

  @Test("all transfers share the blocks, and those of a partial that is released are free again")
  func blocksAreShared() async throws {
    let pool = BlockPool()
    var partials: [FollowedPartial] = []
    let block = [UInt8](repeating: 7, count: 1 << 20)
    for number in 0..<30 {
      let key = PartialKey(id: DownloadID("\(number)"), generation: 0)
      let partial = FollowedPartial(try await storage.openPartial(key, isNew: true), pool: pool)
      partial.begin(with: ByteRangeSet())
      try partial.write(block, at: 0)
      partials.append(partial)
    }
    #expect(pool.borrowed == 96)
    for partial in partials {
      #expect(try drain(partial).bytes == block)
      try partial.write(block, at: 1 << 20)
    }
    #expect(pool.borrowed == 96)
    for partial in partials { try partial.close() }
    partials = []
    #expect(pool.borrowed == 0)
  }

  @Test("bytes in memory that are changed before they were claimed are read", arguments: [0, 50, 99])
  func changedBeforeTheClaim(offset: Int64) async throws {
    let changes: [@Sendable (FollowedPartial) throws -> Void] = [
      { try $0.write([0xFF], at: offset) },
      {
        try $0.truncate(to: offset)
        try $0.write([0xFF], at: offset)
      },
    ]
    for change in changes {
      let partial = try await partial()
      try put(0..<100, into: partial)
      try change(partial)
      let size = Int(try partial.size())
      let (taken, read) = try drain(partial)
      #expect(taken == Array((bytes[..<Int(offset)] + [0xFF] + bytes[Int(offset + 1)..<100]).prefix(size)))
      #expect(read > 0 || offset == 0 && size == 1)
      #expect(partial.isUnchanged)
      try partial.close()
    }
  }

  @Test func bytesInAnyOrderAreTheSame() async throws {
    var generator = SeededGenerator(seed: 99)
    for _ in 0..<50 {
      let partial = try await partial()
      var pieces = stride(from: 0, to: 1000, by: 50).map { Int64($0)..<Int64($0 + 50) }
      pieces.shuffle(using: &generator)
      var taken: [UInt8] = []
      for piece in pieces {
        try put(piece, into: partial)
        if Bool.random(using: &generator) { taken += try drain(partial, from: Int64(taken.count)).bytes }
      }
      taken += try drain(partial, from: Int64(taken.count)).bytes
      #expect(taken == bytes)
      try partial.close()
    }
  }

  @Test func theReaderIsNotifiedOnceAtItsPosition() async throws {
    let partial = try await partial(with: ByteRangeSet(0..<100))
    let (wakes, wake) = AsyncStream<Void>.makeStream()
    partial.notify(wake, at: 100)
    partial.notify(wake, at: 300)
    try put(200..<300, into: partial)
    try put(100..<200, into: partial)
    try put(300..<400, into: partial)
    wake.finish()
    var count = 0
    for await _ in wakes { count += 1 }
    #expect(count == 2, "at once for 100, and after the gap was filled")
    try partial.close()
  }

  @Test func theReaderIsNotifiedOfAChange() async throws {
    let partial = try await partial(with: ByteRangeSet(0..<100))
    let (wakes, wake) = AsyncStream<Void>.makeStream()
    _ = partial.claim(from: 0, atMost: 10)
    partial.notify(wake, at: 1000)
    try partial.truncate(to: 5)
    wake.finish()
    var count = 0
    for await _ in wakes { count += 1 }
    #expect(count == 1)
    try partial.close()
  }

  /// A storage whose partials are followed.
  private struct FollowedStorage: StorageWrapper {
    let base: any Storage
    func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
      let partial = FollowedPartial(try await base.openPartial(key, isNew: isNew), pool: BlockPool())
      partial.begin(with: ByteRangeSet())
      return partial
    }
    func publish(
      _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
      in context: ProcessingContext
    ) async throws -> Artifact {
      try await base.publish(artifact, of: (partial as? FollowedPartial)?.base, at: destination, in: context)
    }
  }

  @Test func everyCallIsPassedOn() async throws {
    let storage = storage
    try await StorageConformance(
      FollowedStorage(base: storage), wrapping: storage, reading: { storage.bytes(of: $0) ?? [] }
    ).run()
  }
}
