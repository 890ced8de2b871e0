#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeSQLite
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// The process ends at each call that SQLite makes during a bulk operation: afterwards all records are changed or
  /// none.
  @Suite(.endsHangs)
  struct BulkCrashTests {
    enum Operation: String, CaseIterable {
      case update, pause, remove

      func perform(on store: any LedgerStore, at now: Date) async throws {
        switch self {
        case .update:
          _ = try await store.update(.matching(.tag("t")), at: now) { record in
            record.request.priority = .high
            record.request.tags = ["new"]
          }
        case .pause: _ = try await store.transition(.matching(.host("a.example")), .pause, at: now)
        case .remove: _ = try await store.remove(.matching(.intent(.silent)))
        }
      }
    }

    private static let count = 400
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    /// A ledger with downloads, closed.
    private static func template(in folder: TemporaryFolder) async throws -> String {
      let path = folder.path("template.sqlite")
      let store = try await SQLiteLedger(path).open()
      _ = try await store.add(
        try (0..<count).map { index in
          let request = try DownloadRequest(
            "https://a.example/\(index)", id: DownloadID("\(index)"), intent: .silent, tags: ["t"]
          ).with(\.metadata, ["text": String(repeating: "x", count: 200)])
          return LedgerAddition(request: request, arrival: Int64(index))
        }, at: now)
      try await store.close()
      return path
    }

    /// Performs an operation on a copy of a ledger whose disk follows a plan.
    private static func attempt(
      _ operation: Operation, on template: String, _ plan: FaultyDisk.Plan
    ) async throws -> (path: String, folder: TemporaryFolder, disk: FaultyDisk, isDone: Bool) {
      let folder = try TemporaryFolder()
      let path = folder.path("l.sqlite")
      try FileManager.default.copyItem(atPath: template, toPath: path)
      let disk = FaultyDisk(plan, pace: Pace())
      let watched = try WatchedFolder(folder.path, on: disk)
      defer { watched.end() }
      var isDone = false
      if let store = try? await SQLiteLedger(path, lockTimeout: .zero).open() {
        do {
          try await operation.perform(on: store, at: now + 1)
          isDone = true
        } catch {}
        try? await store.close()
      }
      return (path, folder, disk, isDone)
    }

    @Test(arguments: Operation.allCases)
    func theProcessEnds(_ operation: Operation) async throws {
      let templates = try TemporaryFolder()
      let template = try await Self.template(in: templates)
      let undisturbed = try await Self.attempt(operation, on: template, .nothing)
      #expect(undisturbed.isDone)
      await Sweep("\(operation)", calls: undisturbed.disk.count, usually: 20).run { number, story in
        let (path, folder, disk, isDone) = try await Self.attempt(operation, on: template, .stop(number))
        story.append(disk.hit.map { "\($0)" } ?? "nothing was stopped")
        let store = try await SQLiteLedger(path).open()
        let records = try await store.records(DownloadQuery())
        let counts = try await store.counts(.all).filter { $0.value != 0 }
        let tags = [try await store.counts(.tag("t")), try await store.counts(.tag("new"))]
          .map { $0.values.reduce(0, +) }
        let changed =
          switch operation {
          case .update: records.count { $0.request.priority == .high && $0.request.tags == ["new"] }
          case .pause: records.count { $0.phase == .paused }
          case .remove: Self.count - records.count
          }
        story.append("\(changed) changed, \(counts), \(tags)")
        let all = changed == Self.count
        let expectedCounts: [DownloadState.Phase: Int] =
          switch operation {
          case .pause where all: [.paused: Self.count]
          case .remove where all: [:]
          default: [.waiting: Self.count]
          }
        let expectedTags = all && operation != .pause ? [0, operation == .update ? Self.count : 0] : [Self.count, 0]
        guard all || changed == 0, all || !isDone, counts == expectedCounts, tags == expectedTags else {
          throw Wrong("the operation is there in part")
        }
        try await store.close()
        withExtendedLifetime(folder) {}
      }
    }
  }
#endif
