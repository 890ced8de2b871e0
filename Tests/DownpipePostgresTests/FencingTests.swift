#if Postgres
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Stores that have lost a download to another store, and do not know it yet.
  @Suite(.endsHangs)
  struct FencingTests {
    /// A ledger with a download that the first store has leased and the second one has taken over.
    private func takenOver() async throws -> (
      ledger: TestLedger, first: PostgresLedgerStore, second: PostgresLedgerStore, old: DownloadRecord
    ) {
      let ledger = try TestLedger()
      let (first, second) = (try await ledger.open(), try await ledger.open())
      try await first.fill(["a", "b"])
      _ = try await first.update("b", at: Date()) { $0.request.after = ["a"] }
      let old = try #require(try await first.leaseAll(for: 60).first)
      try ledger.connect().renameOwners()
      #expect(try await second.reclaim(at: Date() + 3_000) == 1)
      #expect(try await second.leaseAll().map(\.id) == ["a"])
      return (ledger, first, second, old)
    }

    /// All that the tables hold, but for the openings.
    private func content(_ ledger: TestLedger) throws -> [[String?]] {
      try ledger.connect().all(
        """
        SELECT download::text FROM download UNION ALL SELECT tag::text FROM tag
        UNION ALL SELECT dependency::text FROM dependency
        UNION ALL SELECT phase || sum(count) FROM tally GROUP BY phase ORDER BY 1
        """)
    }

    private static let all: RecordFields = [.state, .checkpoint, .steps, .link]

    @Test("A store that has lost a download saves nothing of it", arguments: [all, .state, .checkpoint, .steps, .link])
    func saves(_ fields: RecordFields) async throws {
      let (ledger, first, second, old) = try await takenOver()
      let before = try content(ledger)
      for phase in [DownloadState.Phase.transferring, .processing, .waiting, .paused, .failed, .finished, .cancelled] {
        var record = old
        record.phase = phase
        record.attempts = 7
        record.checkpoint.name = "changed"
        record.checkpoint.total = 1_000
        record.steps.completed = ["one"]
        record.request.url = try #require(URL(string: "https://elsewhere.example/file"))
        #expect(try await !first.save(record, fields, at: Date()), "\(phase)")
        let exchange = try await first.exchange([LedgerSave(record, fields)], leasing: nil, at: Date())
        #expect(exchange.saved == [false] && exchange.reopened.isEmpty && !exchange.mayHaveReleasedDelayed)
        let request = LeaseRequest(now: Date(), until: Date() + 3_000) { _ in .take }
        let leasing = try await first.exchange([LedgerSave(record, fields)], leasing: request, at: Date())
        #expect(leasing.saved == [false] && leasing.leased.isEmpty)
        #expect(try content(ledger) == before, "\(phase)")
      }
      for store in [first, second] { try await store.close() }
    }

    @Test(
      "A store that has lost a download does not renew, move or remove it, and does not give it back when it is closed")
    func others() async throws {
      let (ledger, first, second, _) = try await takenOver()
      let before = try content(ledger)
      try await first.renewLeases(until: Date() + 9_000)
      for event in Lifecycle.Event.allCases where event != .leased {
        #expect(try await first.transition(.ids(["a"]), event, at: Date()).count == 0)
      }
      #expect(try await first.remove(.ids(["a"])).isEmpty)
      #expect(try await first.reclaim(at: Date()) == 0)
      #expect(try content(ledger) == before)
      try await first.close()
      #expect(try content(ledger) == before)
      #expect(try await second.record("a")?.owner == second.owner)
      try await second.close()
    }

    @Test("A downloader that has lost a download says so before it tells what has become of it") func events()
      async throws
    {
      let ledger = try TestLedger()
      let (observer, bytes) = (RecordingObserver(), DownloadFixtures.pattern(size: 100_000))
      let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
      let downloader = try await Downloader {
        source
        FakeStorage()
        observer
        PostgresLedger(ledger.address, schema: ledger.schema)
      }
      let download = try await downloader.add(DownloadRequest("https://example.org/file", id: "a"))
      await source.held(atLeast: 1)
      let other = try await ledger.open()
      // At once: the downloader would lease what it finds waiting.
      _ = try ledger.connect().run(
        "UPDATE download SET owner = (SELECT max(number) FROM opening), lease = lease + 9000")
      var record = try #require(try await other.record("a"))
      #expect(record.owner == other.owner)
      record.apply(.bytesComplete)
      record.apply(.stepsComplete)
      record.steps.artifact = StoredArtifact(kind: .file, path: "elsewhere", name: "elsewhere", size: 5, mediaType: nil)
      #expect(try await other.save(record, [.state, .checkpoint, .steps], at: Date()))
      source.release()
      // The run publishes a file of its own, but not its state.
      _ = try await download.value
      _ = await observer.wait(for: "a", toBe: .finished)
      let told = observer.events(of: "a").compactMap { event -> String? in
        switch event {
        case .attemptFailed(let error): error.code.rawValue
        case .state(.finished(let artifact)): artifact.name
        default: nil
        }
      }
      #expect(told == ["notOwner", "elsewhere"], "\(told)")
      try await other.close()
      await downloader.shutdown()
    }

    @Test(
      "A downloader that has lost a download removes the file that it has published when another one has finished it",
      arguments: ["here", "there"])
    func copies(finishedIn place: String) async throws {
      let ledger = try TestLedger()
      let (storage, bytes) = (FakeStorage(location: "here"), DownloadFixtures.pattern(size: 100_000))
      let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
      let faulty = FaultyLedger(PostgresLedger(ledger.address, schema: ledger.schema))
      let other = try await ledger.open()
      let request = try DownloadRequest("https://example.org/file", id: "a")
      // It belongs to no location.
      _ = try await other.add([LedgerAddition(request: request, arrival: 1)], at: Date())
      let downloader = try await Downloader {
        source
        storage
        faulty
      }
      await source.held(atLeast: 1)
      faulty.hold(.exchange, at: faulty.calls.count { $0 == .exchange } + 1)
      source.release()
      await faulty.held(atLeast: 1)
      while storage.published.isEmpty { await Task.yield() }
      // Each lease counts as an attempt.
      _ = try ledger.connect().run(
        """
        UPDATE download SET attempts = attempts + 1, lease = lease + 9000,
          owner = (SELECT number FROM opening WHERE owner = $1)
        """, [.text(other.owner)])
      var record = try #require(try await other.record("a"))
      #expect(record.owner == other.owner && record.location == nil)
      record.apply(.bytesComplete)
      record.apply(.stepsComplete)
      record.steps = StepLog(
        artifact: StoredArtifact(
          kind: .file, path: "file", name: "file", size: Int64(bytes.count), mediaType: nil, location: place))
      #expect(try await other.save(record, [.state, .checkpoint, .steps], at: Date()))
      faulty.release()
      try await downloader.waitUntilIdle()
      // A file with the path of the finished one is that, if it is in the same storage.
      #expect(storage.published == (place == "here" ? ["file": bytes] : [:]))
      await downloader.shutdown()
      #expect(try await other.record("a")?.steps.artifact?.location == place)
      try await other.close()
    }

    @Test("Of the saves of one exchange, those of lost downloads alone are refused")
    func mixed() async throws {
      let ledger = try TestLedger()
      let (first, second) = (try await ledger.open(), try await ledger.open())
      try await first.fill(["a", "b", "c"])
      var old = try await first.leaseAll()
      let connection = try ledger.connect()
      try connection.renameOwners()
      _ = try connection.run("UPDATE download SET lease = 0 WHERE id = 'b'")
      #expect(try await second.reclaim(at: Date()) == 1)
      #expect(try await second.leaseAll().map(\.id) == ["b"])
      for index in old.indices { old[index].phase = .failed }
      let exchange = try await first.exchange(
        old.reversed().map { LedgerSave($0, [.state, .checkpoint, .steps]) }, leasing: nil, at: Date())
      #expect(exchange.saved == [true, false, true])
      #expect(try await second.counts(.all) == [.failed: 2, .transferring: 1])
      #expect(try await second.record("b")?.owner == second.owner)
      for store in [first, second] { try await store.close() }
    }

    @Test(
      "An attempt of an exchange that comes after its repetition changes nothing, and is told the first answer then")
    func attempts() async throws {
      let ledger = try TestLedger()
      let (store, other, observer) = (try await ledger.open(), try ledger.connect(), try ledger.connect())
      try await store.fill(["a", "b"])
      var held = try #require(try await store.leaseAll().first)
      held.phase = .failed
      let saves = [LedgerSave(held, .state)]
      _ = try await store.exchange(saves, leasing: nil, at: Date(), number: 4)
      // As a connection would that was lost while it committed number 5.
      let backend = try other.backend
      _ = try other.run("BEGIN")
      _ = try other.run(
        "UPDATE answer SET number = 5, kept = '-d' WHERE opening = (SELECT number FROM opening WHERE owner = $1)",
        [.text(store.owner)])
      let request = LeaseRequest(now: Date(), until: Date() + 60) { _ in .take }
      _ = try await store.transition(.all, .resume, at: Date())
      let late = Task { try await store.exchange(saves, leasing: request, at: Date(), number: 5) }
      while try !observer.seesWaiter(for: backend) { await Task.yield() }
      _ = try other.run("COMMIT")
      await #expect(throws: DownloadError.self) { try await late.value }
      #expect(try await store.counts(.all) == [.waiting: 1, .transferring: 1], "nothing was leased")
      let answer = try await store.exchange(saves, leasing: request, at: Date(), number: 5)
      #expect(answer.saved == [false] && answer.leased.isEmpty && answer.mayHaveReleasedDelayed)
      #expect(try await store.exchange([], leasing: request, at: Date(), number: 6).leased.map(\.id) == ["a"])
      try await store.close()
      #expect(try observer.all("SELECT count(*) FROM answer") == [["0"]])
    }

    @Test("An attempt of a change that comes after its repetition changes nothing, and is told the first answer then")
    func attemptsOfChanges() async throws {
      let ledger = try TestLedger()
      let (store, other, observer) = (try await ledger.open(), try ledger.connect(), try ledger.connect())
      try await store.fill(["a", "b"])
      func pause(_ id: DownloadID, _ number: Int64) async throws -> LedgerBulkResult {
        try await store.transition(.ids([id]), .pause, at: Date(), number: number)
      }
      #expect(try await pause("a", 4).count == 1)
      // As a connection would that was lost while it committed number 5.
      let backend = try other.backend
      _ = try other.run("BEGIN")
      _ = try other.run(
        "UPDATE change_answer SET number = 5, kept = '[\"b\"] 1' WHERE opening = (SELECT number FROM opening WHERE owner = $1)",
        [.text(store.owner)])
      let late = Task { try await pause("b", 5) }
      while try !observer.seesWaiter(for: backend) { await Task.yield() }
      _ = try other.run("COMMIT")
      await #expect(throws: DownloadError.self) { try await late.value }
      #expect(try await store.counts(.all) == [.waiting: 1, .paused: 1])
      #expect(try await pause("b", 5) == LedgerBulkResult(ids: ["b"], count: 1))
      #expect(try await store.counts(.all) == [.waiting: 1, .paused: 1], "the answer was given again")
      #expect(try await pause("b", 6).count == 1)
      try await store.close()
      #expect(try observer.all("SELECT count(*) FROM change_answer") == [["0"]])
    }
  }
#endif
