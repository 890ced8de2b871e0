#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeSQLite
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// A download that waits for another one and for a time starts at that time, also in a later process.
  @Suite(.endsHangs)
  struct ReleasedDueTests {
    private let time = VirtualTime()

    private func request(_ id: DownloadID, after: Set<DownloadID> = []) throws -> DownloadRequest {
      try DownloadRequest("https://example.org/file", id: id, destination: .init(name: id.rawValue)).with(
        \.after, after)
    }

    /// Fills a ledger with “b”, which waits for “a” and, after a failure in an earlier process, for a time.
    private func fill(_ ledger: SQLiteLedger) async throws {
      let store = try await ledger.open()
      func add(_ request: DownloadRequest) async throws {
        _ = try await store.add([LedgerAddition(request: request, arrival: 1)], at: time.date)
      }
      try await add(try request("b"))
      let lease = LeaseRequest(now: time.date, until: time.date + 60) { _ in .take }
      var record = try #require(try await store.lease(lease).first)
      (record.phase, record.notBefore) = (.waiting, time.date + 10)
      #expect(try await store.save(record, .state, at: time.date))
      try await add(try request("b", after: ["a"]))
      #expect(try await store.record("b")?.waitsFor == ["a"])
      #expect(try await store.record("b")?.notBefore == time.date + 10)
      try await store.close()
    }

    @Test("A download starts at its due time when its dependency finishes before")
    func startsInTime() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        try await fill(ledger)
        let downloader = try await Downloader(options: DownloaderOptions(time: time, random: { 0.5 })) {
          FakeSource(everyURL: .init(DownloadFixtures.pattern(size: 1000)))
          FakeStorage()
          ledger
        }
        _ = try await downloader.add(try request("a")).value
        await time.sleeper(dueIn: .seconds(10), purpose: .dueTime)
        time.advance(by: .seconds(10))
        _ = try await downloader.download("b")?.value
        #expect(time.now == .seconds(10))
        await downloader.shutdown()
      }
    }
  }
#endif
