#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// Downloads that follow from others, in a ledger that outlives the process.
  @Suite(.endsHangs)
  struct FollowUpTests {
    private let list = URL(string: "https://example.org/list")!
    private let files = [URL(string: "https://a.test/1")!, URL(string: "https://a.test/2")!]

    private func downloader(
      _ path: String, _ source: FakeSource, _ storage: FakeStorage, after: FakePostProcessor<File, File>? = nil
    ) async throws -> Downloader {
      try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
        source
        storage
        FakeRetryPolicy(.giveUp)
        SQLiteLedger(path)
        FollowUp(limits: FollowUpLimits(depth: 2, count: 5), waitsForChildren: true) { [files] _, context in
          context.request.id == "root" ? files.map { DownloadRequest($0) } : []
        }
        if let after { after }
      }
    }

    /// Reopening stands for a restart of the process: what counts is in the file.
    @Test("Children, lineage and dependencies survive a restart, and nothing is added twice")
    func restart() async throws {
      try await withFolder { folder in
        let (path, storage) = ("\(folder)/l.sqlite", FakeStorage())
        let source = FakeSource(everyURL: .init([1, 2, 3]))
        let held = FakeSource(everyURL: .init([1, 2, 3]))
        for file in files { held.script(file, FakeSource.Script([1, 2, 3]).holding(after: 1)) }
        held.script(list, .init([7]))
        let first = try await downloader(path, held, storage)
        let download = try await first.add(DownloadRequest(list, id: "root"))
        await held.held(atLeast: 2)
        // The children may run before the root waits for them.
        for await event in download.events {
          if case .state(.waiting(.dependency)) = event.kind { break }
        }
        await first.shutdown()

        let store = try await SQLiteLedger(path).open()
        let records = try await store.records(DownloadQuery())
        #expect(records.count == 3)
        for child in records where child.id != "root" {
          #expect(child.request.lineage?.root == "root" && child.request.lineage?.depth == 1)
          #expect(child.request.isNamedByServer)
        }
        let root = try #require(records.first { $0.id == "root" })
        #expect(root.phase == .waiting && root.waitsFor.count == 2)
        #expect(try await store.counts(.tag(FollowUp.tag(of: "root"))).values.reduce(0, +) == 2)
        try await store.close()

        let second = try await downloader(path, source, storage)
        try await second.waitUntilIdle()
        let all = try await second.statuses()
        #expect(all.count == 3 && all.allSatisfy { $0.state.phase == .finished }, "\(all)")
        await second.shutdown()
      }
    }
  }
#endif
