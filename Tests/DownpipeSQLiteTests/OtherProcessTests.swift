#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// A ledger whose stores are not told of each other, like the stores of different processes.
  private struct SeparateLedger: Ledger {
    let path: String

    func open() async throws -> any LedgerStore {
      let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(60)).open()
      // There is no file of this name: the store has watchers of its own.
      return SQLiteLedgerStore(pool: pool, path: path + " of another process")
    }
  }

  /// What another process does to the ledger is noticed within a second, and looking for it costs next to nothing.
  @Suite(.endsHangs)
  struct OtherProcessTests {
    private static let url = URL(filePath: "/file")

    private func request(_ id: DownloadID, after: Set<DownloadID> = []) -> DownloadRequest {
      var request = DownloadRequest(Self.url, id: id, destination: .init(name: id.rawValue))
      request.after = after
      return request
    }

    private func addition(_ id: DownloadID) -> LedgerAddition { LedgerAddition(request: request(id), arrival: 1) }

    private func lease(_ store: any LedgerStore) async throws -> DownloadRecord {
      let leased = try await store.lease(LeaseRequest(now: start, until: .distantFuture) { _ in .take })
      return try #require(leased.first)
    }

    private func finish(_ record: DownloadRecord, _ store: any LedgerStore) async throws {
      var record = record
      record.apply(.bytesComplete)
      record.apply(.stepsComplete)
      #expect(try await store.save(record, .state, at: start))
    }

    private func downloader(
      _ path: String, _ time: VirtualTime, _ source: FakeSource, scope: LeaseScope = .own
    ) async throws -> Downloader {
      try await Downloader(options: DownloaderOptions(time: time, scope: scope)) {
        source
        FakeStorage()
        SeparateLedger(path: path)
      }
    }

    /// Lets the downloader look for changes of other processes once.
    private func look(_ time: VirtualTime) async {
      await time.sleeper(dueIn: .milliseconds(500), purpose: .others)
      time.advance(by: .milliseconds(500))
    }

    @Test("A store reports the relevant changes of others, each once, and none of its own")
    func relevantChanges() async throws {
      try await withFolder { folder in
        let ledger = SeparateLedger(path: "\(folder)/l.sqlite")
        let other = try await ledger.open()
        _ = try await other.add([addition("old")], at: start)
        let store = try await ledger.open()
        _ = try await store.reclaim(at: start)
        func hears() async throws -> Bool? {
          let hears = try await store.hasChangesByOtherProcesses()
          #expect(try await store.hasChangesByOtherProcesses() == false, "a change is reported twice")
          return hears
        }
        #expect(try await hears() == false, "a change before the opening")
        _ = try await store.add([addition("own")], at: start)
        #expect(try await hears() == false, "a change of its own")

        _ = try await other.add([addition("a")], at: start)
        #expect(try await hears() == true, "an addition")
        _ = try await other.add([addition("a")], at: time(1))
        #expect(try await hears() == false, "an addition that changes nothing")
        _ = try await other.update("a", at: time(2)) { $0.request.priority = .high }
        #expect(try await hears() == true, "a changed request")
        _ = try await other.transition(.ids(["own"]), .pause, at: time(2))
        #expect(try await hears() == true, "a pause")
        var record = try await lease(other)
        record.checkpoint.total = .known(7)
        #expect(try await other.save(record, .checkpoint, at: start))
        try await other.renewLeases(until: time(9))
        #expect(try await hears() == false, "a lease, a checkpoint")
        try await finish(record, other)
        #expect(try await hears() == true, "an end")
        // A change of its own in between does not hide that of another.
        _ = try await other.remove(.ids(["old"])) { _ in true }
        _ = try await store.transition(.ids(["own"]), .resume, at: start)
        #expect(try await hears() == true, "a removal")
        await #expect(throws: DownloadError.self) {
          let cycle = [request("b", after: ["c"]), request("c", after: ["b"])]
          _ = try await other.add(cycle.map { LedgerAddition(request: $0, arrival: 1) }, at: start)
        }
        #expect(try await hears() == false, "a change that was undone")
        _ = try await lease(other)
        try await other.close()
        #expect(try await hears() == true, "a lease that was given back")
        try await store.close()
      }
    }

    @Test("A download that another process finishes ends for its watchers within a second")
    func watched() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let other = try await SeparateLedger(path: path).open()
        _ = try await other.add([addition("film")], at: start)
        let record = try await lease(other)
        let time = VirtualTime()
        let downloader = try await downloader(path, time, FakeSource([:]))
        let download = try #require(try await downloader.download("film"))
        async let end = download.events.reduce(into: [DownloadEvent.Kind]()) { $0.append($1.kind) }
        await look(time)
        await time.sleeper(dueIn: .milliseconds(500), purpose: .others)
        let before = time.now
        try await finish(record, other)
        await look(time)
        let kinds = await end
        #expect(time.now - before <= .seconds(1))
        guard case .state(.finished)? = kinds.last else {
          Issue.record("the watcher saw \(kinds)")
          return
        }
        try await other.close()
        await downloader.shutdown()
      }
    }

    @Test("A download goes on within a second when another process finishes what it waits for")
    func dependency() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let other = try await SeparateLedger(path: path).open()
        _ = try await other.add([addition("first")], at: start)
        let record = try await lease(other)
        let time = VirtualTime()
        let source = FakeSource([Self.url: [.init([1, 2, 3])]])
        let downloader = try await downloader(path, time, source)
        _ = try await downloader.add(request("second", after: ["first"]))
        await look(time)
        await time.sleeper(dueIn: .milliseconds(500), purpose: .others)
        #expect(source.requests.isEmpty)
        try await finish(record, other)
        time.advance(by: .milliseconds(500))
        await source.requests(atLeast: 1)
        #expect(time.now <= .seconds(1))
        try await downloader.waitUntilIdle()
        try await other.close()
        await downloader.shutdown()
      }
    }

    @Test("A caller that waits until the queue is idle returns within a second of the last end")
    func idle() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let other = try await SeparateLedger(path: path).open()
        _ = try await other.add([addition("film")], at: start)
        let record = try await lease(other)
        let time = VirtualTime()
        let downloader = try await downloader(path, time, FakeSource([:]))
        async let idle: Void = downloader.waitUntilIdle()
        await look(time)
        await time.sleeper(dueIn: .milliseconds(500), purpose: .others)
        try await finish(record, other)
        time.advance(by: .milliseconds(500))
        try await idle
        try await other.close()
        await downloader.shutdown()
      }
    }

    @Test("Nothing is looked for while nothing is watched or queued")
    func quiet() async throws {
      try await withFolder { folder in
        let time = VirtualTime()
        let source = FakeSource([Self.url: [.init([1, 2, 3])]])
        let downloader = try await downloader("\(folder)/l.sqlite", time, source, scope: .all)
        _ = try await downloader.add(request("a"))
        _ = try await downloader.download("a")?.value
        // One look finds that the queue is empty.
        await look(time)
        let lease = DownloaderOptions().lease
        await time.sleepers { $0.allSatisfy { $0 > .milliseconds(500) } }
        #expect(time.pendingSleeps.allSatisfy { $0 <= lease })
        // A watcher makes it look again.
        async let end = downloader.download("a")?.events.first { _ in false }
        _ = try await end
        await downloader.shutdown()
      }
    }
  }
#endif
