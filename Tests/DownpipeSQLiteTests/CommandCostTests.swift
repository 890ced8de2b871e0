#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// A command reads no more rows than it changes, and a constant number: however many others the ledger has.
  @Suite(.endsHangs)
  struct CommandCostTests {
    /// A command, and the phase in which it finds its downloads.
    struct Case: Sendable, CustomTestStringConvertible {
      let name: String
      var phase = DownloadState.Phase.waiting
      let body: @Sendable (Downloader) async throws -> Void
      var testDescription: String { "\(name) (\(phase.rawValue))" }
    }

    private static let few = (0..<5).map { DownloadID("few\($0)") }
    private static let one: DownloadID = "few0"

    private static func request(_ id: DownloadID) throws -> DownloadRequest {
      try DownloadRequest("https://few.example/\(id)", id: id, tags: ["few"])
    }

    static let single: [Case] = [
      Case(name: "add") { _ = try await $0.add(request("new")) },
      Case(name: "add again") { _ = try await $0.add(request(one)) },
      Case(name: "add again, changed") {
        var changed = try request(one)
        changed.priority = .high
        _ = try await $0.add(changed)
      },
      Case(name: "add, waiting for another") {
        var dependent = try request("new")
        dependent.after = [one]
        _ = try await $0.add(dependent)
      },
      Case(name: "status") { _ = try await $0.status(of: one) },
      Case(name: "prioritise") { try await $0.update(one) { $0.priority = .high } },
      Case(name: "rename the destination") { try await $0.update(one) { $0.destination.name = "other" } },
      Case(name: "wait for another") { try await $0.update(one) { $0.after = ["few1"] } },
      Case(name: "pause") { try await $0.pause(one) },
      Case(name: "resume", phase: .paused) { try await $0.resume(one) },
      Case(name: "resume", phase: .failed) { try await $0.resume(one) },
      Case(name: "restart", phase: .failed) { try await $0.restart(one) },
      Case(name: "restart", phase: .cancelled) { try await $0.restart(one) },
      Case(name: "start") { try await $0.start(one) },
      Case(name: "cancel") { try await $0.cancel(one) },
      Case(name: "discard", phase: .finished) { try await $0.discard(one) },
      Case(name: "remove") { try await $0.remove(one) },
      Case(name: "remove", phase: .finished) { try await $0.remove(one, deletingFile: true) },
      Case(name: "remove", phase: .failed) { try await $0.remove(one) },
      Case(name: "remove what there is not") { try await $0.remove("none") },
      Case(name: "refresh", phase: .finished) { try await $0.refresh(one) },
      Case(name: "verify", phase: .finished) { _ = try await $0.verify(one, repairing: true) },
      Case(name: "rename a file", phase: .finished) { _ = try? await $0.rename(one, to: "other") },
      Case(name: "statuses of some") { _ = try await $0.statuses(of: few) },
      Case(name: "counts") { _ = try await $0.counts() },
      Case(name: "counts by tag") { _ = try await $0.counts(DownloadFilter(tag: "few")) },
      Case(name: "counts by ids") { _ = try await $0.counts(.ids(few)) },
      Case(name: "totals by tag") { _ = try await $0.totals(DownloadFilter(tag: "few")) },
      Case(name: "a page") { _ = try await $0.statuses(DownloadQuery(limit: 5)) },
    ]

    static let bulk: [Case] = [
      ("tag", DownloadFilter(tag: "few")), ("host", DownloadFilter(host: "few.example")), ("ids", .ids(few)),
    ]
    .flatMap { name, filter -> [Case] in
      [
        Case(name: "pause by \(name)") { try await $0.pauseAll(filter) },
        Case(name: "resume by \(name)", phase: .paused) { try await $0.resumeAll(filter) },
        Case(name: "resume by \(name)", phase: .failed) { try await $0.resumeAll(filter) },
        Case(name: "restart by \(name)", phase: .failed) { try await $0.restartAll(filter) },
        Case(name: "cancel by \(name)") { try await $0.cancelAll(filter) },
        Case(name: "update by \(name)") { try await $0.updateAll(filter) { $0.priority = .high } },
        Case(name: "remove by \(name)") { try await $0.removeAll(filter) },
        Case(name: "remove by \(name)", phase: .finished) { try await $0.removeAll(filter) },
        Case(name: "refresh by \(name)", phase: .finished) { try await $0.refreshAll(filter) },
      ]
    }

    /// Commands for downloads that are being transferred.
    static let running: [Case] = [
      Case(name: "status") { _ = try await $0.status(of: one) },
      Case(name: "prioritise") { try await $0.update(one) { $0.priority = .low } },
      Case(name: "change the URL") { try await $0.update(one) { $0.url = URL(filePath: "/other") } },
      Case(name: "pause") { try await $0.pause(one) },
      Case(name: "cancel") { try await $0.cancel(one) },
      Case(name: "restart") { try await $0.restart(one) },
      Case(name: "remove") { try await $0.remove(one) },
      Case(name: "pause by ids") { try await $0.pauseAll(.ids(few)) },
      Case(name: "cancel by tag") { try await $0.cancelAll(DownloadFilter(tag: "few")) },
      Case(name: "remove by host") { try await $0.removeAll(DownloadFilter(host: "few.example")) },
    ]

    /// The steps of a command beside a number of other downloads in all phases.
    private func work(of command: Case, beside others: Int) async throws -> (steps: Int, worst: String) {
      try await withFolder { folder in
        let work = StatementWork()
        let ledger = CountedLedger(path: "\(folder)/l.sqlite", work: work)
        let store = try await ledger.open()
        _ = try await store.add(
          Self.few.enumerated().map { LedgerAddition(request: try Self.request($1), arrival: Int64($0)) }, at: start)
        _ = try await store.add([addition("pattern", 10, tags: ["crowd"])], at: start)
        try await store.close()
        try await fill(ledger.path, others, few: command.phase)

        let downloader = try await Downloader(
          options: DownloaderOptions(time: VirtualTime(), startsSuspended: true)
        ) {
          FakeSource(everyURL: .init([1]))
          FakeStorage()
          ledger
        }
        // The first call ranks the downloads.
        try await downloader.update("pattern") { $0.metadata = ["a": "b"] }
        _ = work.take()
        try await command.body(downloader)
        let found = work.take()
        await downloader.shutdown()
        return found
      }
    }

    /// The steps of starting five downloads, or of a command while they run and of all that follows from it.
    private func work(
      of command: Case?, whileRunningBeside others: Int
    ) async throws -> (steps: Int, worst: String) {
      try await withFolder { folder in
        let work = StatementWork()
        let ledger = CountedLedger(path: "\(folder)/l.sqlite", work: work)
        let store = try await ledger.open()
        let additions = try Self.few.enumerated().map { number, id in
          var request = try Self.request(id)
          request.priority = .high
          return LedgerAddition(request: request, arrival: Int64(number))
        }
        _ = try await store.add(additions, at: start)
        _ = try await store.add([addition("pattern", 10, tags: ["crowd"])], at: start)
        try await store.close()
        try await fill(ledger.path, others, few: .waiting)

        let source = FakeSource(everyURL: .init([UInt8](repeating: 1, count: 100)).holding(after: 10))
        let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime(), startsSuspended: true)) {
          source
          FakeStorage()
          ledger
        }
        // The first call ranks the downloads.
        try await downloader.update("pattern") { $0.metadata = ["a": "b"] }
        _ = work.take()
        await downloader.setSuspended(false)
        await source.held(atLeast: Self.few.count)
        if let command {
          _ = work.take()
          try await command.body(downloader)
        }
        await downloader.shutdown()
        return work.take()
      }
    }

    /// Adds downloads like “pattern” in all phases that need no owner.
    private func fill(_ path: String, _ count: Int, few phase: DownloadState.Phase) async throws {
      let file = try DatabaseQueue(path: path)
      try await file.write { db in
        try db.execute(
          sql: """
            CREATE TEMP TABLE phases AS SELECT column1 AS phase FROM
              (VALUES ('waiting'), ('paused'), ('failed'), ('finished'), ('cancelled'));
            INSERT INTO download (id, kind, opening, phase, rank, arrival, created_at, updated_at, url)
            WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < \(count))
            SELECT phases.phase || n, kind, opening, phases.phase, randomblob(16), 1000 + n, n, n, url
            FROM download, number, phases WHERE download.id = 'pattern';
            INSERT INTO tag (tag, generation) SELECT 'crowd', generation FROM download WHERE arrival > 1000;
            UPDATE download SET phase = '\(phase.rawValue)' WHERE id LIKE 'few_';
            UPDATE download SET artifact_kind = 'file', artifact_name = 'file', artifact_size = 1, artifact_path = '/none'
              WHERE id LIKE 'few_' AND phase = 'finished';
            DELETE FROM tally;
            INSERT INTO tally (phase, count) SELECT phase, count(*) FROM download GROUP BY phase;
            """)
      }
      try file.close()
    }

    @Test("A command for one download reads nothing of the others", arguments: single + bulk)
    func costs(_ command: Case) async throws {
      let (alone, _) = try await work(of: command, beside: 20)
      let (beside, worst) = try await work(of: command, beside: 1_000)
      // A row costs ten steps at least. What depends on the depth of an index is less.
      #expect(alone > 0 && beside < alone + 200, "\(alone) steps beside 100 others, \(beside) beside 5,000; \(worst)")
    }

    @Test("A start, and a command for running downloads, read nothing of the others", arguments: [nil] + running)
    func costsWhileRunning(_ command: Case?) async throws {
      let (alone, _) = try await work(of: command, whileRunningBeside: 20)
      let (beside, worst) = try await work(of: command, whileRunningBeside: 1_000)
      // 980 × 5 more rows cost 49,000 steps at least. How changes are joined in transactions makes a small difference.
      #expect(alone > 0 && beside < alone + 5_000, "\(alone) steps beside 100 others, \(beside) beside 5,000; \(worst)")
    }
  }
#endif
