#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeFiles
  @testable import DownpipeSQLite

  /// The disk fails, or the process ends, at each call of the storage and the ledger while a finished file is refreshed. At
  /// any moment the old file or the new one is in its place, and afterwards the ledger says which one.
  @Suite(.endsHangs)
  struct RefreshCrashTests {
    struct Setup: Sendable, Hashable, CustomStringConvertible {
      var durability: Durability
      /// Whether the server has another file.
      var isChanged: Bool
      /// How the file gets to its place.
      var way: Way
      enum Way: Sendable, CaseIterable {
        /// The bytes are the file, which has no name before it is published.
        case plain
        /// A step makes the file.
        case step
        /// A step makes the file, and another one moves it out of the store.
        case moved
      }
      var description: String { "\(durability), \(isChanged ? "changed" : "unchanged"), \(way)" }
    }

    static let setups = [Durability.process, .power].flatMap { durability in
      [true, false].flatMap { isChanged in
        Setup.Way.allCases.map { Setup(durability: durability, isChanged: isChanged, way: $0) }
      }
    }

    /// A folder with a finished download, whose refresh is disturbed.
    private struct Bench {
      static let old = DownloadFixtures.pattern(size: 30_000, seed: 1)
      static let new = DownloadFixtures.pattern(size: 31_000, seed: 2)
      static let url = URL(string: "http://a/film")!

      let setup: Setup
      let folder: TemporaryFolder
      var store: String { folder.path("store") }
      var ledger: String { folder.path("ledger/ledger.sqlite") }
      var published: String { setup.way == .moved ? folder.path("films") : store }

      init(_ setup: Setup) async throws {
        self.setup = setup
        folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path("ledger"), withIntermediateDirectories: false)
        let pace = Pace()
        pace.hurry()
        let downloader = try await start(FaultyDisk(pace: pace), pace, FakeSource([Self.url: [.init(Self.old)]]))
        _ = try await downloader.add(request).value
        await downloader.shutdown(waitingAtMost: nil)
        try check([Self.old])
      }

      /// The source of the refresh.
      var source: FakeSource { FakeSource([Self.url: [.init(setup.isChanged ? Self.new : Self.old)]]) }

      var request: DownloadRequest {
        DownloadRequest(Self.url, id: "film", destination: .init(name: "film.bin")).with(\.refresh, .ifChanged)
      }

      func start(_ disk: FaultyDisk, _ pace: Pace, _ source: FakeSource) async throws -> Downloader {
        let (system, setup, store, ledger) = (disk.system, setup, store, ledger)
        let films = folder.path("films")
        let options = DownloaderOptions(
          time: pace, random: { 0.5 }, checkpoints: CheckpointPolicy(bytes: 1 << 20, interval: Pace.never),
          progressInterval: Pace.tick, lease: Pace.lease)
        return try await Downloader(options: options) {
          source
          Retry(.exponential(attempts: 5))
          FileStore(store, durability: setup.durability, system: system)
          SQLiteLedger(ledger, durability: setup.durability, lockTimeout: .zero)
          if setup.way != .plain { Invert(system: system) }
          if setup.way == .moved { MoveInto(films, durability: setup.durability, system: system) }
        }
      }

      /// Checks that one of some files is in its place, whole and alone.
      func check(_ contents: [[UInt8]]) throws {
        // A process that has ended between its link and its rename has left a hidden second name.
        let names = try FileManager.default.contentsOfDirectory(atPath: published).filter { !$0.hasPrefix(".downpipe") }
        guard names == ["film.bin"] else { throw Wrong("there is published: \(names)") }
        let bytes = FileManager.default.contents(atPath: published + "/film.bin").map([UInt8].init)
        let expected = contents.map { content in setup.way == .plain ? content : content.map { ~$0 } }
        guard let bytes, expected.contains(bytes) else {
          throw Wrong("the published file has wrong bytes, \(bytes?.count ?? -1)")
        }
      }

      /// Checks that the refresh has come to its end, and that the record is that of the file in its place.
      ///
      /// - Parameter isClean: Whether nothing else is left on the disk. A failed call can leave a partial behind.
      func checkFinished(isClean: Bool = true) async throws {
        try check([setup.isChanged ? Self.new : Self.old])
        let store = try await SQLiteLedger(ledger).open()
        guard let record = try await store.record("film") else { throw Wrong("the record is lost") }
        try await store.close()
        guard record.phase == .finished, record.refreshing == nil, record.earlierArtifact == nil,
          record.steps.note == nil,
          record.checkpoint.validator == FakeSource.Script(setup.isChanged ? Self.new : Self.old).validator
        else { throw Wrong("the record is \(record)") }
        guard let stored = record.steps.artifact else { throw Wrong("the record has no artifact") }
        let files = FileStore(self.store)
        let artifact = Artifact(
          location: .path(try files.path(forStored: stored.path ?? "")), name: stored.name,
          size: ByteCount(stored.size),
          modifiedAt: stored.modifiedAt)
        guard await files.contains(artifact) else { throw Wrong("the record is of another file: \(stored)") }
        guard isClean else { return }
        let names = try FileManager.default.contentsOfDirectory(atPath: published).filter { $0 != ".downpipe" }
        guard names == ["film.bin"] else { throw Wrong("there is left beside the file: \(names)") }
        let own = self.store + "/.downpipe"
        let left = ((try? FileManager.default.subpathsOfDirectory(atPath: own)) ?? []).filter { name in
          var isFolder: ObjCBool = false
          _ = FileManager.default.fileExists(atPath: own + "/" + name, isDirectory: &isFolder)
          return name != "name" && !isFolder.boolValue
        }
        guard left.isEmpty else { throw Wrong("there is left: \(left)") }
      }
    }

    /// Refreshes until a call that is the last one or fails.
    ///
    /// - Returns: The disk, with its calls.
    @discardableResult
    private static func disturb(_ bench: Bench, _ plan: FaultyDisk.Plan, insists: Bool) async throws -> FaultyDisk {
      let pace = Pace()
      let disk = FaultyDisk(plan, pace: pace)
      let watched = try WatchedFolder(bench.folder.path("ledger"), on: disk)
      defer { watched.end() }
      try await withDeadline(CrashBench.limit) {
        let source = bench.source
        var downloader = try? await bench.start(disk, pace, source)
        if downloader == nil, insists { downloader = try await bench.start(disk, pace, source) }
        guard let downloader else { return }
        var download = try? await downloader.add(bench.request)
        if download == nil, insists { download = try await downloader.add(bench.request) }
        if let download, !disk.isDead {
          if insists {
            while (try? await download.value) == nil {
              try Task.checkCancellation()
              try bench.check([Bench.old, Bench.new])
              _ = try? await download.resume()
              await Task.yield()
            }
          } else {
            await withTaskGroup { group in
              group.addTask { _ = try? await download.value }
              group.addTask { await disk.death() }
              await group.next()
              group.cancelAll()
            }
          }
        }
        await downloader.shutdown(waitingAtMost: nil)
      }
      return disk
    }

    @Test("the process ends at any call", arguments: setups)
    func theProcessEnds(_ setup: Setup) async throws {
      let bench = try await Bench(setup)
      let calls = try await Self.disturb(bench, .nothing, insists: true).count
      try await bench.checkFinished()
      await Sweep("dead, \(setup)", calls: calls, usually: 4).run { number, story in
        let bench = try await Bench(setup)
        let disk = try await Self.disturb(bench, .stop(number), insists: false)
        story.append(disk.hit.map { "dead at \($0)" } ?? "not dead")
        try bench.check(setup.isChanged ? [Bench.old, Bench.new] : [Bench.old])
        // The next process does the rest, whether it knows of the refresh or not.
        try await Self.disturb(bench, .nothing, insists: true)
        try await bench.checkFinished()
      }
    }

    @Test("one call fails", arguments: setups.filter { $0.durability == .power }, [FaultyDisk.Fault.broken, .full])
    func oneCallFails(_ setup: Setup, _ fault: FaultyDisk.Fault) async throws {
      let calls = try await Self.disturb(try await Bench(setup), .fail(.max, fault), insists: true).count
      await Sweep("\(fault), \(setup)", calls: calls, usually: 2).run { number, story in
        let bench = try await Bench(setup)
        let disk = try await Self.disturb(bench, .fail(number, fault), insists: true)
        story.append(disk.hit.map { "\($0)" } ?? "nothing failed")
        // The next refresh finds the file in order.
        try bench.check([setup.isChanged ? Bench.new : Bench.old])
        try await Self.disturb(bench, .nothing, insists: true)
        try await bench.checkFinished(isClean: false)
      }
    }
  }
#endif
