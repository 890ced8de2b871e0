import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Copies of small files that downloads share.
@Suite(.endsHangs)
struct CompanionCacheTests {
  private let cache = CompanionCache()
  private let time = VirtualTime()
  private let url = URL(string: "https://a.test/SHA256SUMS")!
  /// The conditions of the requests so far.
  private let asked = Watched<[Validator?]>([])
  private let isReleased = Watched(false)

  private static func tag(_ text: String, isWeak: Bool = false) -> Validator {
    Validator(entityTag: EntityTag(text, isWeak: isWeak))
  }

  private static let notModified = SourceReply(coverage: .none(.notModified), validator: tag("1"), body: .empty)

  private func reply(
    _ size: Int = 10, _ validator: Validator? = tag("1"), freshFor: Duration? = nil, coverage: Coverage = .whole
  ) -> SourceReply {
    SourceReply(
      coverage: coverage, length: .known(Int64(size)), validator: validator, freshFor: freshFor,
      body: .bytes([UInt8](repeating: 1, count: size)))
  }

  private func key(
    _ url: URL? = nil, by origin: String = "https://a.test", atMost maximum: Int = 100, version: Int = 0,
    _ change: (inout SourceRequest) -> Void = { _ in }
  ) -> CompanionCache.Key {
    var request = SourceRequest(url: url ?? self.url)
    change(&request)
    return CompanionCache.Key(
      request, for: url ?? self.url, by: Origin(origin), atMost: maximum, sourcesVersion: version)
  }

  /// Asks for a file; the replies of the server follow each other, and the last one repeats.
  @discardableResult
  private func fetch(
    _ key: CompanionCache.Key, after number: UInt64? = nil, _ replies: [SourceReply]
  ) async throws -> SourceReply {
    let before = asked.value.count
    return try await cache.reply(for: key, after: number, time: time) { stale in
      let index = asked.update { asked in
        asked.append(stale?.validator)
        return asked.count - before - 1
      }
      return replies[min(index, replies.count - 1)]
    }
  }

  @discardableResult
  private func fetch(_ key: CompanionCache.Key, _ replies: SourceReply...) async throws -> SourceReply {
    try await fetch(key, replies)
  }

  @discardableResult
  private func fetch(after number: UInt64? = nil, _ reply: SourceReply) async throws -> SourceReply {
    try await fetch(key(), after: number, [reply])
  }

  /// A task that asks for the file, whose request waits until it is released.
  private func task(_ reply: SourceReply) -> Task<SourceReply, any Error> {
    Task {
      try await cache.reply(for: key(), time: time) { _ in
        asked.update { $0.append(nil) }
        await isReleased.wait { $0 }
        try Task.checkCancellation()
        return reply
      }
    }
  }

  private func waiters(_ count: Int) async {
    while cache.waiting(key()) != count { await Task.yield() }
  }

  // MARK: One request

  @Test("downloads that ask at the same time wait for one request, also if its file is not fresh afterwards")
  func oneRequest() async throws {
    let tasks = (0..<20).map { _ in task(reply(freshFor: .zero)) }
    await waiters(19)
    isReleased.update { $0 = true }
    for task in tasks { #expect(try await task.value.length == .known(10)) }
    #expect(asked.value.count == 1)
    try await fetch(reply())
    #expect(asked.value.count == 2)
  }

  @Test("if the download that asks is cancelled, the next one asks; one that waits is not waited for")
  func cancellation() async throws {
    let first = task(reply())
    await asked.wait { $0.count == 1 }
    let others = (0..<3).map { _ in task(reply()) }
    await waiters(3)
    others[0].cancel()
    await #expect(throws: CancellationError.self) { try await others[0].value }
    #expect(asked.value.count == 1)
    first.cancel()
    isReleased.update { $0 = true }
    await #expect(throws: CancellationError.self) { try await first.value }
    for task in others[1...] { #expect(try await task.value.length == .known(10)) }
    #expect(asked.value.count == 2)
  }

  @Test("a failure is that of all that wait, and of none that asks later")
  func failure() async throws {
    let tasks = (0..<3).map { _ in
      Task {
        try await cache.reply(for: key(), time: time) { _ in
          asked.update { $0.append(nil) }
          await isReleased.wait { $0 }
          throw DownloadError(.network, "cut")
        }
      }
    }
    await waiters(2)
    isReleased.update { $0 = true }
    for task in tasks {
      #expect(await #expect(throws: DownloadError.self) { try await task.value }?.code == .network)
    }
    #expect(asked.value.count == 1)
    #expect(try await fetch(reply()).length == .known(10))
  }

  // MARK: Freshness

  @Test("a copy is used for a minute; then its server is asked whether it has changed")
  func freshness() async throws {
    try await fetch(reply())
    time.advance(by: .seconds(59))
    try await fetch(reply(11))
    #expect(asked.value == [nil])
    time.advance(by: .seconds(1))
    #expect(try await fetch(Self.notModified).length == .known(10))
    #expect(asked.value == [nil, Self.tag("1")])
    time.advance(by: .seconds(59))
    #expect(try await fetch(reply(11)).length == .known(10), "the confirmation counts from its request")
    time.advance(by: .seconds(1))
    #expect(try await fetch(reply(12, Self.tag("2"))).length == .known(12))
    try await fetch(reply())
    #expect(asked.value == [nil, Self.tag("1"), Self.tag("1")])
  }

  @Test(
    "a server may say that the file is fresh for a shorter time, and not for a longer one", arguments: [0, 5, 3600])
  func statedFreshness(seconds: Int) async throws {
    try await fetch(reply(freshFor: .seconds(seconds)))
    let isFresh = seconds > 0
    try await fetch(reply(11))
    #expect(asked.value.count == (isFresh ? 1 : 2))
    try await fetch(key { $0.headers = ["A": "b"] }, reply(freshFor: .seconds(seconds)))
    time.advance(by: .seconds(min(seconds, 60)))
    let count = asked.value.count
    try await fetch(key { $0.headers = ["A": "b"] }, reply(11))
    #expect(asked.value.count == count + 1)
  }

  @Test("without a strong validator the file is fetched again")
  func weakValidators() async throws {
    for validator in [nil, Self.tag("w", isWeak: true), Validator(lastModified: time.date, responseDate: time.date)] {
      let key = self.key { $0.metadata = ["validator": "\(String(describing: validator))"] }
      try await fetch(key, reply(10, validator))
      time.advance(by: .seconds(60))
      #expect(try await fetch(key, reply(11)).length == .known(11))
    }
    #expect(asked.value == [nil, nil, nil, nil, nil, nil])
  }

  @Test("an answer to a condition that says nothing about the copy is not used")
  func uselessAnswers() async throws {
    var elsewhere = Self.notModified
    elsewhere.finalURL = URL(string: "https://b.test/SHA256SUMS")
    var another = Self.notModified
    another.validator = Self.tag("2")
    let refused = SourceReply(coverage: .none(.preconditionFailed), body: .empty)
    for (number, useless) in [elsewhere, another, refused].enumerated() {
      let key = self.key { $0.metadata = ["number": "\(number)"] }
      try await fetch(key, reply())
      time.advance(by: .seconds(60))
      #expect(try await fetch(key, useless, reply(11)).length == .known(11))
    }
    #expect(asked.value == (0..<3).flatMap { _ in [nil, Self.tag("1"), nil] })
  }

  @Test("a file that is gone is not kept")
  func goneFile() async throws {
    try await fetch(reply())
    time.advance(by: .seconds(60))
    let gone = reply(0, nil, coverage: .none(.status(404)))
    #expect(try await fetch(gone).coverage == .none(.status(404)))
    #expect(cache.size == 0)
    try await fetch(reply())
    #expect(asked.value == [nil, Self.tag("1"), nil])
  }

  @Test("a download that needs a later copy gets one, as a whole, and others share it")
  func laterCopies() async throws {
    try await fetch(reply())
    let number = cache.lastNumber
    #expect(try await fetch(after: number, reply(11, Self.tag("2"))).length == .known(11))
    #expect(asked.value == [nil, nil])
    for after in [nil, 0, number] {
      #expect(try await fetch(after: after, reply(12)).length == .known(11))
    }
    #expect(asked.value.count == 2)
    #expect(try await fetch(after: cache.lastNumber, reply(12)).length == .known(12))
  }

  @Test("a request that was sent before is not the one that a download needs")
  func laterRequest() async throws {
    let earlier = task(reply())
    await asked.wait { $0.count == 1 }
    let number = cache.lastNumber
    let later = Task { try await fetch(after: number, reply(11)) }
    await waiters(1)
    isReleased.update { $0 = true }
    #expect(try await earlier.value.length == .known(10))
    #expect(try await later.value.length == .known(11))
  }

  // MARK: Keys

  @Test("only requests that are the same for their source share a file")
  func keys() async throws {
    let keys = [
      key(), key(URL(string: "https://a.test/other")!), key { $0.headers = ["Authorization": "a"] },
      key { $0.headers = ["Authorization": "b"] }, key { $0.metadata = ["user": "a"] },
      key { $0.isNamedByServer = true }, key(by: "https://b.test"), key(atMost: 99), key(version: 1),
      key { $0.url = URL(string: "https://a.test/SHA256SUMS?key=1")! },
    ]
    for key in keys { try await fetch(key, reply()) }
    #expect(asked.value.count == keys.count)
    for key in keys { try await fetch(key, reply()) }
    #expect(asked.value.count == keys.count)
    let same = self.key { request in
      (request.id, request.attempt) = ("other", 3)
      request.pace = TransferPace(time: time) { _ in .zero }
      request.lease = RequestLease { true }
    }
    try await fetch(same, reply())
    #expect(asked.value.count == keys.count)
  }

  // MARK: Bounds

  @Test("the copies that were used least recently are forgotten")
  func bounds() async throws {
    let size = 1 << 20
    let keys = (0..<9).map { number in self.key { $0.metadata = ["number": "\(number)"] } }
    for key in keys[..<7] { try await fetch(key, reply(size)) }
    try await fetch(keys[0], reply(size))
    #expect(asked.value.count == 7 && cache.size == 7 * (size + CompanionCache.overhead))
    for key in keys[7...] { try await fetch(key, reply(size)) }
    #expect(cache.size <= CompanionCache.capacity)
    try await fetch(keys[0], reply(size))
    #expect(asked.value.count == 9)
    try await fetch(keys[1], reply(size))
    #expect(asked.value.count == 10)
    #expect(cache.size <= CompanionCache.capacity)
  }

  @Test("many small files are bounded, too")
  func smallFiles() async throws {
    for number in 0..<10_000 { try await fetch(key { $0.metadata = ["number": "\(number)"] }, reply(1)) }
    #expect(cache.size <= CompanionCache.capacity && cache.size > CompanionCache.capacity * 9 / 10)
  }

  @Test("large files, parts, coded files and refusals are not kept")
  func unkeptReplies() async throws {
    var coded = reply()
    coded.contentCoding = "gzip"
    let unkept = [
      reply(4 << 20 + 1), coded, reply(coverage: .range(0..<10, total: .known(20))),
      reply(coverage: .none(.status(503))),
    ]
    for reply in unkept {
      try await fetch(reply)
      #expect(cache.size == 0)
    }
    try await fetch(key { $0.condition = Self.tag("1") }, reply())
    try await fetch(key { $0.range = RequestedRange(from: 1) }, reply())
    #expect(cache.size == 0)
    try await fetch(reply(4 << 20))
    #expect(cache.size == 4 << 20 + CompanionCache.overhead)
  }
}
