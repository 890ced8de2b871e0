#if os(Linux)
  import Downpipe
  import DownpipeTesting
  import Foundation
  import Glibc
  import Testing

  extension EndToEnd {
    /// Full and read-only disks, and limits on file sizes: real file systems of a few megabytes.
    @Suite(.serialized, .enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    struct DiskFullTests {
      static let content = ScriptedContent.pattern(size: 12 << 20, seed: 11)

      /// A server that does not state the length of the whole file: one that does not fit is not begun.
      private func serve(
        _ change: @escaping @Sendable (ScriptedReply) -> ScriptedReply = { $0 }
      ) async throws -> ScriptedHTTPServer {
        let parts = stride(from: 0, to: Self.content.size, by: 1 << 16).map {
          Self.content.bytes(in: $0..<min($0 + 1 << 16, Self.content.size))
        }
        return try await .start { request in
          change(
            request.range == nil
              ? .chunked(parts, headers: ["ETag": "\"v1\"", "Accept-Ranges": "bytes"])
              : .file(Self.content, etag: "\"v1\"", for: request))
        }
      }

      /// Holds the first reply back after three megabytes.
      private func serve(heldAt gate: ServerGate) async throws -> ScriptedHTTPServer {
        try await .start { request in
          let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
          return request.number == 1 ? reply.held(at: gate, after: 3 << 20) : reply
        }
      }

      /// The file to delete to make room.
      enum Relief: Sendable, CaseIterable {
        case largerDisk
        case deletedFile
      }

      /// Where the ledger is.
      enum LedgerPlace: Sendable, CaseIterable {
        /// On the full disk: the default of the tool.
        case beside
        case elsewhere
      }

      @Test(arguments: LedgerPlace.allCases, Relief.allCases)
      func theToolKeepsItsBytesAndResumes(ledger: LedgerPlace, relief: Relief) async throws {
        let server = try await serve()
        let folder = try TemporaryFolder()
        let disk = try await SmallDisk(megabytes: relief == .largerDisk ? 4 : 20)
        let filler = disk.path("filler")
        if relief == .deletedFile {
          try Data(count: 16 << 20).write(to: URL(filePath: filler, directoryHint: .notDirectory))
        }
        var arguments = ["-d", disk.path, "--json"]
        if ledger == .elsewhere { arguments += ["--ledger", folder.path("ledger.sqlite")] }
        let get = try Command.downpipe(
          ["get", "\(server.url("/film"))"] + arguments, by: ["timeout", "-k", "1", "\(Command.hangLimit)"])

        let full = try await get.run()
        #expect(full.status == 1, "\(full.everything)")
        let failed = try #require(full.results.last, "\(full.everything)")
        #expect(failed.event == "failed")
        #expect(failed.error?.code == "noSpace", "\(full.everything)")
        #expect(failed.error?.message.contains("space") == true, "\(failed.error?.message ?? "")")
        let kept = try #require(failed.bytes)
        // Only the end of the partial is given up, for its name and for a ledger on the same disk.
        let room: Int64 = (64 << 10) + (ledger == .beside ? 512 << 10 : 0)
        let seen = full.toolLines.compactMap(\.bytes).max() ?? 0
        #expect(kept > 2 << 20 && kept + room >= seen, "\(kept) of \(seen)")
        let partial = try disk.read(".downpipe/partials/" + (try #require(try disk.partials().first)))
        let isKept = partial.count >= Int(kept) && Array(partial.prefix(Int(kept))) == Self.content.bytes(in: 0..<kept)
        #expect(isKept, "\(partial.count) bytes are in the partial")

        let listed = try await Command.downpipe(["list"] + arguments).run()
        #expect(listed.status == 0, "\(listed.everything)")
        let record = try #require(listed.toolLines.first)
        #expect(record.state == "failed")
        #expect(record.error?.code == "noSpace")
        #expect(record.bytes == kept)

        switch relief {
        case .largerDisk: try await disk.remount("size=64m")
        case .deletedFile: try FileManager.default.removeItem(atPath: filler)
        }
        let asked = server.requests.count
        let second = try await get.run()
        #expect(second.status == 0, "\(second.everything)")
        let finished = try #require(second.results.last)
        #expect(finished.resumedFrom == kept, "\(second.everything)")
        #expect(server.requests.dropFirst(asked).map(\.range?.start) == [Checkpoints.start(behind: kept)])
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        #expect(try disk.partials().isEmpty)
        await server.shutdown()
      }

      @Test("A file that does not fit is not begun; small ones are fetched, and the file when there is room")
      func aFileThatDoesNotFit() async throws {
        let small = ScriptedContent.pattern(size: 2 << 20, seed: 12)
        let server = try await ScriptedHTTPServer.start { request in
          .file(request.path == "/film" ? Self.content : small, etag: "\"v1\"", for: request)
        }
        let disk = try await SmallDisk(megabytes: 10)
        let arguments = ["-d", disk.path, "-j", "1", "--json"]
        let urls = ["/film", "/1", "/2", "/3"].map { "\(server.url($0))" }
        let outcome = try await Command.downpipe(["get"] + urls + arguments).run()
        #expect(outcome.status == 1, "\(outcome.everything)")
        let failed = outcome.results.filter { $0.event == "failed" }
        #expect(failed.map(\.error?.code) == ["noSpace"], "\(outcome.everything)")
        #expect(failed.first?.bytes == 0)
        for number in 1...3 { #expect(try disk.read("\(number)") == small.allBytes) }
        #expect(try disk.partials().isEmpty)
        try await disk.remount("size=64m")
        let second = try await Command.downpipe(["get", urls[0]] + arguments).run()
        #expect(second.status == 0, "\(second.everything)")
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        await server.shutdown()
      }

      @Test(arguments: LedgerPlace.allCases)
      func theLibraryResumesByItself(ledger: LedgerPlace) async throws {
        // The first attempt does not begin before its events are followed.
        let followed = ServerGate()
        let server = try await serve { $0.after(.hold(followed)) }
        let folder = try TemporaryFolder()
        let disk = try await SmallDisk(megabytes: 4)
        let downloader = try await Downloader {
          HTTPSource()
          FileStore(disk.path)
          #if SQLite
            SQLiteLedger(ledger == .beside ? disk.path(".downpipe/ledger.sqlite") : folder.path("ledger.sqlite"))
          #endif
        }
        let download = try await downloader.add(DownloadRequest(server.url("/film")))

        var isFull = false
        var reason: WaitingReason?
        var starts: [Int64] = []
        events: for await event in download.events {
          followed.open()
          switch event.kind {
          case .started(_, let from): starts.append(from)
          case .attemptFailed(let error) where error.code == .noSpace: isFull = true
          case .state(.waiting(let why)) where isFull && reason == nil:
            reason = why
            // The test only makes room.
            try await disk.remount("size=64m")
          case .state(let state) where state.phase.isFinal: break events
          default: break
          }
        }
        let status = try await download.status
        #expect(isFull)
        var waitedForRoom = false
        if case .missing(.disk, _, let error) = reason { waitedForRoom = error.code == .noSpace }
        #expect(waitedForRoom, "\(String(describing: reason))")
        #expect(status.state.phase == .finished, "\(status.state)")
        #expect(status.attempts == 2)
        #expect(status.resumedFrom > 2 << 20, "\(status.resumedFrom)")
        #expect(starts.first == 0)
        #expect(starts.last == status.resumedFrom)
        #expect(server.requests.map(\.range?.start) == [nil, Checkpoints.start(behind: status.resumedFrom)])
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        await downloader.shutdown()
        await server.shutdown()
      }

      // A file system with a file open for writing cannot be remounted read-only: it is remounted between attempts.

      @Test func aReadOnlyDiskLosesNothingOfTheTool() async throws {
        let held = ServerGate()
        let server = try await serve(heldAt: held)
        let folder = try TemporaryFolder()
        let disk = try await SmallDisk(megabytes: 64)
        let get = try Command.downpipe([
          "get", "\(server.url("/film"))", "-d", disk.path, "--ledger", folder.path("ledger.sqlite"), "--json",
        ])
        let first = try await get.run { line, process in
          if ToolLine(line)?.bytes == 3 << 20 { kill(process, SIGINT) }
        }
        #expect(first.status == 130, "\(first.everything)")
        held.open()

        try await disk.remount("ro")
        let before = try disk.partials()
        let refused = try await get.run()
        // The tool notices before it starts, as an error of usage.
        #expect(refused.status == 2, "\(refused.everything)")
        #expect(refused.errors.lowercased().contains("read-only"), "\(refused.everything)")
        #expect(server.requests.count == 1)
        #expect(try disk.partials() == before)

        try await disk.remount("rw")
        let second = try await get.run()
        #expect(second.status == 0, "\(second.everything)")
        #expect(second.results.last?.resumedFrom == 3 << 20)
        #expect(server.requests.map(\.range?.start) == [nil, Checkpoints.start(behind: 3 << 20)])
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        await server.shutdown()
      }

      @Test func aLedgerOnAReadOnlyDiskIsReported() async throws {
        let server = try await serve()
        let disk = try await SmallDisk(megabytes: 64)
        let get = try Command.downpipe(["get", "\(server.url("/film"))", "-d", disk.path, "--json"])
        try await disk.remount("ro")
        let refused = try await get.run()
        #expect(refused.status != 0)
        #expect(refused.errors.lowercased().contains("read-only"), "\(refused.everything)")
        #expect(server.requests.isEmpty)
        try await disk.remount("rw")
        let second = try await get.run()
        #expect(second.status == 0, "\(second.everything)")
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        await server.shutdown()
      }

      @Test func aReadOnlyDiskLosesNothingOfTheLibrary() async throws {
        let held = ServerGate()
        let server = try await serve(heldAt: held)
        let folder = try TemporaryFolder()
        let disk = try await SmallDisk(megabytes: 64)
        let downloader = try await Downloader {
          HTTPSource()
          FileStore(disk.path)
          #if SQLite
            SQLiteLedger(folder.path("ledger.sqlite"))
          #endif
        }
        let download = try await downloader.add(DownloadRequest(server.url("/film")))
        for await event in download.events {
          if case .progress(let progress) = event.kind, progress.received == 3 << 20 { break }
        }
        try await download.pause()
        held.open()

        try await disk.remount("ro")
        try await download.resume()
        var reason = ""
        for await event in download.events {
          guard case .state(.waiting(.machine(_, let text))) = event.kind else { continue }
          reason = text
          break
        }
        #expect(reason.lowercased().contains("read-only"), "\(reason)")
        #expect(downloader.machineFault?.code == .permission)
        #expect(try await download.status.progress.received == 3 << 20)

        // It goes on by itself.
        try await disk.remount("rw")
        _ = try await download.value
        #expect(try await download.status.resumedFrom == 3 << 20)
        #expect(server.requests.map(\.range?.start) == [nil, Checkpoints.start(behind: 3 << 20)])
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        await downloader.shutdown()
        await server.shutdown()
      }
    }

    /// `ulimit -f`, which needs no rights: a write beyond it raises SIGXFSZ, which kills a process by default.
    @Suite struct FileSizeLimitTests {
      @Test(arguments: ["curl", "urlsession"])
      func aFileSizeLimitIsAnErrorAndNotACrash(source: String) async throws {
        let content = DiskFullTests.content
        let server = try await ScriptedHTTPServer.start { .file(content, etag: "\"v1\"", for: $0) }
        let folder = try TemporaryFolder()
        let arguments = ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--source", source, "--json"]
        // In units of 1024 bytes.
        let limited = try await Command.downpipe(
          arguments, by: ["bash", "-c", "ulimit -c 0; ulimit -f 3072; exec \"$0\" \"$@\""]
        ).run()
        #expect(limited.status == 1, "\(limited.everything)")
        let failed = limited.results.last
        #expect(failed?.error?.code == "noSpace", "\(limited.everything)")
        #expect(failed?.error?.message.contains("limit") == true, "\(limited.everything)")
        // The chunk of the body that exceeded the limit does not count.
        let kept = try #require(failed?.bytes)
        #expect(kept > 2 << 20 && kept <= 3 << 20)

        let second = try await Command.downpipe(arguments).run()
        #expect(second.status == 0, "\(second.everything)")
        #expect(second.results.last?.resumedFrom == kept, "\(second.everything)")
        let isIdentical = try folder.read("out/film") == content.allBytes
        #expect(isIdentical)
        await server.shutdown()
      }
    }
  }
#endif
