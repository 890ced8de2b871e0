#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Texts that are special to the server, to arrays or to JSON, and very long ones.
  @Suite(.endsHangs)
  struct HostileTextTests {
    /// Each differs from the others, also in the form that is stored.
    private static let short = [
      "\0", "\u{1}", "\u{1}0", "\u{1}1", "\0\u{1}", "\u{1}\0", "a\0b", "\u{1},", "at ", " ", "'", "\"", "\\", "\\\\",
      "\\\"",
      "\\x00", "\\u0000", "NULL", "null", "{}", "{a,b}", "a,b", "%", "_", "$1", "'; DROP TABLE download; --", "\n",
      "\r\n",
      "\t", "\u{7F}", "\u{FFFD}", "\u{FEFF}", "é", "日本", "👩‍👩‍👧", "👩", "🏳️‍🌈", "\u{10FFFF}",
    ]
    /// Texts that cannot be compressed, so that no index makes them fit, and that differ at their ends only.
    private static func long(_ count: Int, _ end: String) -> String {
      var generator: any RandomNumberGenerator = Fixed()
      let characters = (0..<count - end.utf8.count).map { _ in
        Character(Unicode.Scalar(UInt8.random(in: 0x21...0x7E, using: &generator)))
      }
      return String(characters) + end
    }

    private struct Fixed: RandomNumberGenerator {
      var state: UInt64 = 1
      mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return (state >> 33) << 32 | state >> 33
      }
    }

    private static let ids =
      short + [
        String(repeating: "\u{1}", count: 255), String(repeating: "\0", count: 255), String(repeating: "👩", count: 63),
        long(255, "x"), long(255, "y"),
      ]
    private static let tags =
      short + [
        "", long(5_000, "x"), long(5_000, "y"), String(repeating: "\u{1}", count: 5_000),
        String(repeating: "\u{1}", count: 4_999), String(repeating: "👩‍👩‍👧", count: 5_000),
      ]

    @Test("Ids are kept, found and told apart")
    func identifiers() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      let ids = Self.ids.map { DownloadID($0) }
      try await store.fill(ids)
      #expect(try await store.counts(.all) == [.waiting: ids.count])
      #expect(try await other.records(DownloadQuery()).map(\.id) == ids)
      #expect(Set(try await other.records(of: ids).map(\.id)) == Set(ids))
      for id in ids {
        #expect(try await other.record(id)?.id == id)
        #expect(try await other.records(DownloadQuery(ids: [id])).map(\.id) == [id])
        #expect(try await other.counts(DownloadFilter(ids: [id])) == [.waiting: 1])
        let request = LeaseRequest(now: Date(), until: Date() + 3_000, scope: .ids([id])) { _ in .take }
        var record = try #require(try await other.lease(request).first)
        #expect(record.id == id)
        record.checkpoint.name = id.rawValue
        record.error = DownloadError(.ledger, id.rawValue)
        record.phase = .failed
        #expect(try await other.save(record, [.state, .checkpoint, .steps], at: Date()))
        let saved = try #require(try await store.record(id))
        #expect(saved.checkpoint.name == id.rawValue && saved.error?.message == record.error?.message)
        #expect(try await store.transition(.ids([id]), .resume, at: Date()).ids == [id])
        #expect(try await store.remove(.ids([id])).map(\.id) == [id])
      }
      #expect(try await other.records(DownloadQuery()).isEmpty)
      #expect(try await other.damaged().isEmpty)
      for store in [store, other] { try await store.close() }
    }

    @Test("Dependencies on hostile ids are kept, and released")
    func dependencies() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      let ids = Self.ids.map { DownloadID($0) }
      try await store.fill(ids)
      var last = try LedgerAddition("dependent", order: 1_000)
      last.request.after = Set(ids)
      _ = try await store.add([last], at: Date())
      #expect(try await other.record("dependent")?.waitsFor == Set(ids))
      var leased = try await store.leaseAll()
      #expect(leased.map(\.id) == ids)
      for index in leased.indices { leased[index].phase = .finished }
      #expect(
        try await store.exchange(leased.map { LedgerSave($0, .state) }, leasing: nil, at: Date()).saved.allSatisfy {
          $0
        })
      #expect(try await other.record("dependent")?.waitsFor == [])
      #expect(try await other.leaseAll().map(\.id) == ["dependent"])
      for store in [store, other] { try await store.close() }
    }

    @Test("Tags, intents, metadata and locations are kept, found and told apart")
    func tags() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      let requests = try Self.tags.enumerated().map { number, text in
        var request = try DownloadRequest("https://example.org/file", id: "\(number)", tags: [text, "all"])
        request.intent = Intent(text)
        request.metadata = [text: text, "\(text) more": "\(number)"]
        request.destination.directory = "folder \(number)"
        return request
      }
      let additions = requests.enumerated().map {
        LedgerAddition(request: $1, arrival: Int64($0), location: Self.tags[$0])
      }
      _ = try await store.add(additions, at: Date())
      let everything = Set(requests.map(\.id))
      #expect(try await Set(other.records(DownloadQuery(tag: "all")).map(\.id)) == everything)
      for (request, text) in zip(requests, Self.tags) {
        let record = try #require(try await other.record(request.id))
        #expect(record.request == request && record.location == text)
        #expect(try await other.records(DownloadQuery(tag: text)).map(\.id) == [request.id])
        #expect(try await other.records(DownloadQuery(intent: Intent(text))).map(\.id) == [request.id])
        #expect(try await other.records(DownloadQuery(location: text)).map(\.id) == [request.id])
        #expect(try await other.counts(DownloadFilter(tag: text)) == [.waiting: 1])
        let lease = LeaseRequest(now: Date(), until: Date() + 3_000, scope: .tag(text), location: text) { candidate in
          candidate.tags == [text, "all"] && candidate.intent == Intent(text) ? .take : .stop
        }
        #expect(try await other.lease(lease).map(\.id) == [request.id])
        _ = try await store.update(request.id, at: Date()) { $0.request.tags = [text + "2"] }
        #expect(try await other.records(DownloadQuery(tag: text)).isEmpty)
        #expect(try await other.records(DownloadQuery(tag: text + "2")).map(\.id) == [request.id])
      }
      #expect(try await other.damaged().isEmpty)
      try await store.keep(settings: Data(Self.tags.joined(separator: "|").utf8))
      #expect(try await other.settings() == Data(Self.tags.joined(separator: "|").utf8))
      for store in [store, other] { try await store.close() }
    }

    @Test("Hosts are found and told apart, also very long ones")
    func hosts() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      let label = String(repeating: "a", count: 60) + "."
      let long = String(repeating: label, count: 80)
      let hosts = [
        "a_b.example", "[::1]", "xn--p1b6ci4b4b3a.example", "a%2Cb.example", long + "x", long + "y", "a'b.example",
      ]
      let requests = try hosts.map { try DownloadRequest("https://\($0)/file", id: DownloadID("\($0.suffix(200))")) }
      _ = try await store.add(requests.map { LedgerAddition(request: $0, arrival: 1) }, at: Date())
      for request in requests {
        #expect(try await other.record(request.id)?.request == request)
        #expect(try await other.records(DownloadQuery(host: request.host)).map(\.id) == [request.id])
        let lease = LeaseRequest(now: Date(), until: Date() + 3_000) { $0.host == request.host ? .take : .skip }
        #expect(try await other.lease(lease).map(\.id) == [request.id])
      }
      for store in [store, other] { try await store.close() }
    }

    @Test("An id of 5,000 characters is kept, or refused with nothing of the call")
    func longIdentifier() async throws {
      let ledger = try TestLedger()
      let store = try await ledger.open()
      let id = DownloadID(Self.long(5_000, "x"))
      do {
        try await store.fill(["a", id])
        #expect(try await store.record(id)?.id == id)
      } catch {
        #expect((error as? DownloadError)?.code == .ledger)
        #expect(try await store.counts(.all) == [:])
        #expect(try await store.record("a") == nil)
      }
      try await store.fill(["b"])
      #expect(try await store.record("b") != nil)
      try await store.close()
    }
  }
#endif
