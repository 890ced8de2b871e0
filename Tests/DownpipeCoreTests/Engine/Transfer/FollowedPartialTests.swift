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
    let partial = FollowedPartial(try await storage.openPartial(PartialKey(id: "a", generation: 0), isNew: true))
    for range in ranges.ranges { try put(range, into: partial) }
    partial.begin(with: ranges)
    return partial
  }

  private func put(_ range: ByteRange, into partial: FollowedPartial) throws {
    try partial.write(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]), at: range.lowerBound)
  }

  @Test func bytesCanBeClaimedUpToTheFirstGap() async throws {
    let partial = try await partial(with: ByteRangeSet(0..<100))
    #expect(partial.claim(from: 0, atMost: 60) == 60)
    #expect(partial.claim(from: 60, atMost: 60) == 40)
    #expect(partial.claim(from: 100, atMost: 60) == 0)
    try put(200..<300, into: partial)
    #expect(partial.claim(from: 100, atMost: 1000) == 0)
    try put(100..<200, into: partial)
    #expect(partial.claim(from: 100, atMost: 1000) == 200)
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
      #expect(partial.claim(from: 0, atMost: 500) == 500)
      try change(partial)
      #expect(partial.isUnchanged == !isNoticed)
      #expect((partial.claim(from: 500, atMost: 1) == nil) == isNoticed)
      try partial.close()
    }
  }

  @Test func otherBytesInTheirPlaceAreNoticed() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write([1, 2, 3], to: "file")
    let partial = try await partial(with: ByteRangeSet(0..<100))
    #expect(partial.claim(from: 0, atMost: 1) == 1)
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
    #expect(partial.claim(from: 0, atMost: 10) == 0)
    try partial.close()
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
      let partial = FollowedPartial(try await base.openPartial(key, isNew: isNew))
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
