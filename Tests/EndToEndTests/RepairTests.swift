import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

#if SQLite
  extension EndToEnd {
    /// Damaged files, whose wrong pieces alone are fetched again: with real sockets, files and ledgers.
    @Suite struct RepairTests {
      private static let size = 8 << 20
      private static let piece: Int64 = 1 << 20
      private static let bytes = DownloadFixtures.pattern(size: size)
      /// The file with one flipped bit in its sixth piece.
      private static let flipped = wrong(bytes, at: 5 << 20 | 77)

      private static func wrong(_ bytes: [UInt8], at offsets: Int...) -> [UInt8] {
        var wrong = bytes
        for offset in offsets { wrong[offset] ^= 4 }
        return wrong
      }

      private static func pieces(_ algorithm: DigestAlgorithm = .sha256) async throws -> PieceDigests {
        let folder = try TemporaryFolder()
        return try await PieceDigests.of(file: try folder.write(bytes, to: "f"), algorithm: algorithm, length: piece)
      }

      private func downloader(_ folder: TemporaryFolder, segmented: Bool = false) async throws -> Downloader {
        try await Downloader {
          HTTPSource()
          FileStore(folder.path("out"))
          SQLiteLedger(folder.path("ledger.sqlite"))
          Retry(.exponential(attempts: 3, base: .milliseconds(1)))
          if segmented { Segmented(connections: 4, minimumSize: 1 << 20) }
          VerifyChecksum()
          SetModificationDate()
        }
      }

      /// `/right`, `/wrong` and `/whole`, which has no ranges, and counts the bytes of `/right`.
      private func withServer(
        _ body: (ScriptedHTTPServer, TemporaryFolder) async throws -> Void
      ) async throws {
        let server = try await ScriptedHTTPServer.start { request in
          let right = ScriptedContent.bytes(Self.bytes)
          return switch request.path {
          case "/right": .file(right, etag: "\"r\"", for: request)
          case "/whole": .file(right, supportsRanges: false, for: request)
          case "/wrong": .file(.bytes(Self.flipped), etag: "\"w\"", for: request)
          case "/other": .file(.bytes(Self.bytes.reversed()), etag: "\"o\"", for: request)
          default: .status(404)
          }
        }
        do { try await body(server, try TemporaryFolder()) } catch {
          await server.shutdown()
          throw error
        }
        await server.shutdown()
      }

      private func asked(_ server: ScriptedHTTPServer, _ path: String) -> [String] {
        server.requests.filter { $0.path == path }.map { $0.headers["Range"] ?? "all" }
      }

      private func expectNothingLeft(in folder: TemporaryFolder) throws {
        let rest = try folder.contents().filter { $0.contains("/partials/") || $0.contains("/work/") }
        #expect(rest == [])
        #expect(try folder.contents().count { $0.hasPrefix("out/") && !$0.contains(".downpipe") } == 1)
      }

      @Test("a wrong piece alone is fetched again, from the other place", arguments: [true, false], [true, false])
      func theOtherPlace(hasDigest: Bool, segmented: Bool) async throws {
        try await withServer { server, folder in
          let downloader = try await downloader(folder, segmented: segmented)
          var request = try DownloadRequest("\(server.url("/wrong"))", mirrors: [server.url("/right")])
          request.destination.name = "file"
          request.pieces = try await Self.pieces()
          if hasDigest {
            request.expectedDigests = [
              try await FileDigest.of(file: try folder.write(Self.bytes, to: "f"), algorithm: .sha256)
            ]
          }
          let artifact = try await downloader.add(request).value
          #expect(try folder.read("out/file") == Self.bytes)
          #expect(artifact.path == folder.path("out/file"))
          if !segmented {
            #expect(asked(server, "/wrong") == ["all"])
            #expect(asked(server, "/right") == ["bytes=5242880-6291455"])
          }
          await downloader.shutdown()
          if hasDigest { try FileManager.default.removeItem(atPath: folder.path("f")) }
          try expectNothingLeft(in: folder)
        }
      }

      @Test("the only place is asked once more, and then the pieces that are right are kept")
      func theOnlyPlace() async throws {
        try await withServer { server, folder in
          let downloader = try await downloader(folder)
          var request = try DownloadRequest("\(server.url("/wrong"))", id: "a", destination: .init(name: "file"))
          request.pieces = try await Self.pieces(.sha1)
          let download = try await downloader.add(request)
          await #expect {
            try await download.value
          } throws: { error in
            (error as? DownloadError)?.code == .pieceMismatch
          }
          let asked = asked(server, "/wrong")
          #expect(asked.first == "all" && asked.count > 1 && asked.dropFirst().allSatisfy { $0 != "all" }, "\(asked)")
          let fetched = try await download.status.bytesFetched
          #expect(fetched <= Int64(Self.size) + 5 * Self.piece, "\(fetched)")
          // Another place is named: the rest of the file is still there.
          try await download.update { $0.mirrors = [server.url("/right")] }
          try await download.resume()
          _ = try await download.value
          #expect(try folder.read("out/file") == Self.bytes)
          let more = try await download.status.bytesFetched - fetched
          #expect(more <= 3 * Self.piece, "\(more)")
          await downloader.shutdown()
          try expectNothingLeft(in: folder)
        }
      }

      @Test("another file is fetched as a whole from the next place, and a server without ranges is enough")
      func otherFiles() async throws {
        try await withServer { server, folder in
          let downloader = try await downloader(folder)
          for (path, mirror, asked) in [("/other", "/right", ["all"]), ("/wrong", "/whole", nil)] {
            var request = try DownloadRequest("\(server.url(path))", mirrors: [server.url(mirror)])
            request.destination.name = String(path.dropFirst())
            request.pieces = try await Self.pieces()
            _ = try await downloader.add(request).value
            #expect(try folder.read("out" + path) == Self.bytes)
            if let asked { #expect(self.asked(server, mirror) == asked) }
          }
          await downloader.shutdown()
        }
      }

      // MARK: Files on the disk

      enum Damage: CaseIterable { case silent, edited, cut, missing }

      /// Damages a published file.
      private func damage(_ path: String, _ damage: Damage) throws {
        var status = stat()
        try #require(stat(path, &status) == 0)
        let handle = try FileHandle(forUpdating: URL(filePath: path))
        switch damage {
        case .missing: try FileManager.default.removeItem(atPath: path)
        case .cut: try handle.truncate(atOffset: 1 << 20)
        case .silent, .edited:
          try handle.seek(toOffset: 3 << 20)
          try handle.write(contentsOf: Data([Self.bytes[3 << 20] ^ 1]))
        }
        try handle.close()
        guard damage == .silent else { return }
        // As a disk does it, which changes no time.
        var times = [status.st_atim, status.st_mtim]
        try #require(utimensat(AT_FDCWD, path, &times, 0) == 0)
      }

      @Test("one flipped bit of a published file costs one piece", arguments: Damage.allCases, [true, false])
      func published(damage: Damage, hasPieces: Bool) async throws {
        try await withServer { server, folder in
          let downloader = try await downloader(folder)
          var request = try DownloadRequest("\(server.url("/right"))", id: "a", destination: .init(name: "file"))
          let path = try folder.write(Self.bytes, to: "sum")
          if hasPieces { request.pieces = try await Self.pieces() }
          if !hasPieces { request.expectedDigests = [try await FileDigest.of(file: path, algorithm: .sha256)] }
          try FileManager.default.removeItem(atPath: path)
          let download = try await downloader.add(request)
          _ = try await download.value
          #expect(try await download.verify() == .intact)
          #expect(try await download.verify(repairing: true) == .intact)
          #expect(server.requests.count == 1, "an intact file is not asked about")

          try self.damage(folder.path("out/file"), damage)
          let found = try await download.verify()
          switch (damage, found) {
          case (.missing, .missing): break
          case (.cut, .damaged(let error)): #expect(error.code == .lengthMismatch)
          case (.silent, .damaged(let error)), (.edited, .damaged(let error)):
            #expect(error.code == (hasPieces ? .pieceMismatch : .digestMismatch))
            if hasPieces { #expect(error.wrongBytes == ByteRangeSet(3 << 20..<4 << 20)) }
          default: Issue.record("\(found)")
          }
          #expect(server.requests.count == 1, "without a repair nothing is fetched")
          #expect(try await download.verify(repairing: true) == found)
          let artifact = try await download.value
          #expect(artifact.path == folder.path("out/file"), "it is in its place")
          #expect(try folder.read("out/file") == Self.bytes)
          #expect(try await download.verify() == .intact)
          let fetched = try await download.status.bytesFetched
          let isRepaired = hasPieces && (damage == .silent || damage == .edited)
          #expect(fetched == (isRepaired ? Self.piece : Int64(Self.size)), "\(fetched)")
          #expect(try await download.status.request.headStart == nil)
          await downloader.shutdown()
          try expectNothingLeft(in: folder)
        }
      }

      /// A step that may change the bytes.
      private struct Unknown: UniversalPostProcessor {
        func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
      }

      @Test(
        "a repaired file keeps its name, its date and what its server has said of it",
        arguments: ["\"v1\"", "W/\"v1\""])
      func whatIsKnown(tag: String) async throws {
        let isBroken = Watched(false)
        let server = try await ScriptedHTTPServer.start { request in
          let reply = ScriptedReply.file(
            .bytes(Self.bytes), etag: tag, lastModified: Date(timeIntervalSince1970: 1_000_000_000), name: "film.mkv",
            mediaType: "video/x-matroska", for: request)
          return isBroken.value && request.headers["Range"] != nil ? reply.truncated(after: 0) : reply
        }
        let folder = try TemporaryFolder()
        let downloader = try await downloader(folder)
        var request = try DownloadRequest("\(server.url("/get?id=5"))", id: "a")
        request.pieces = try await Self.pieces()
        let download = try await downloader.add(request)
        let before = try await download.value
        #expect(before.name == "film.mkv")
        try damage(folder.path("out/film.mkv"), .edited)
        // The repair breaks off, again and again, and goes on by hand.
        isBroken.update { $0 = true }
        _ = try await download.verify(repairing: true)
        await #expect(throws: DownloadError.self) { try await download.value }
        isBroken.update { $0 = false }
        try await download.resume()
        let after = try await download.value
        #expect(after.path == folder.path("out/film.mkv") && after.mediaType == before.mediaType)
        #expect(try folder.read("out/film.mkv") == Self.bytes)
        #expect(after.modifiedAt == before.modifiedAt, "the date is that of the server")
        let fetched = try await download.status.bytesFetched
        #expect(fetched < 4 * Self.piece, "\(fetched)")
        try expectNothingLeft(in: folder)
        // The validator is still known.
        let requests = server.requests.count
        try await download.refresh()
        _ = try await download.value
        let later = server.requests.dropFirst(requests)
        #expect(later.count == 1 && later.first?.headers["If-None-Match"] == tag, "\(later)")
        let more = try await download.status.bytesFetched
        #expect(more == 0 || more == fetched, "\(more)")
        await downloader.shutdown()
        await server.shutdown()
      }

      @Test("a repair that waits does not hold for another file")
      func changedMeanwhile() async throws {
        try await withServer { server, folder in
          let downloader = try await downloader(folder)
          var request = try DownloadRequest("\(server.url("/right"))", id: "a", destination: .init(name: "file"))
          request.pieces = try await Self.pieces()
          let download = try await downloader.add(request)
          _ = try await download.value
          try damage(folder.path("out/file"), .edited)
          await downloader.setSuspended(true)
          _ = try await download.verify(repairing: true)
          try await download.update { request in
            request.url = server.url("/other")
            request.pieces = nil
            request.expectedSize = .known(Int64(Self.size))
          }
          #expect(try await download.status.request.headStart == nil)
          await downloader.setSuspended(false)
          _ = try await download.value
          #expect(try folder.read("out/file") == Self.bytes.reversed())
          await downloader.shutdown()
        }
      }

      @Test("files that steps have made, and files without a digest, cannot be verified")
      func unverifiable() async throws {
        try await withServer { server, folder in
          let downloader = try await Downloader {
            HTTPSource()
            FileStore(folder.path("out"))
            VerifyChecksum()
            Unknown()
          }
          let plain = try await downloader.add(
            DownloadRequest("\(server.url("/right"))", id: "plain").with(\.steps, .only("VerifyChecksum")))
          _ = try await plain.value
          guard case .unverifiable = try await plain.verify(repairing: true) else {
            Issue.record("a file without a digest")
            return
          }
          var request = try DownloadRequest("\(server.url("/right"))", id: "changed")
          request.pieces = try await Self.pieces()
          let changed = try await downloader.add(request)
          _ = try await changed.value
          guard case .unverifiable(let reason) = try await changed.verify() else {
            Issue.record("a file that a step may have changed")
            return
          }
          #expect(reason.contains("Unknown"), "\(reason)")
          await #expect(throws: DownloadError.self) { try await downloader.verify("unknown") }
          await downloader.shutdown()
        }
      }

      @Test("downpipe verify names damaged files, and --repair fetches their wrong pieces")
      func tool() async throws {
        try await DefectRun.with { request in
          .file(
            .bytes(Self.bytes), etag: "\"r\"", lastModified: Date(timeIntervalSince1970: 1_000_000_000), for: request)
        } _: { run in
          let digests = try await Self.pieces()
          let hashes = (0..<digests.count).map { "<hash>\(digests.digest(at: $0).hex)</hash>" }.joined()
          let document = """
            <?xml version="1.0" encoding="UTF-8"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">
            <file name="film"><size>\(Self.size)</size><pieces length="\(Self.piece)" type="sha-256">\(hashes)</pieces>
            <url>\(run.server.url("/film"))</url></file></metalink>
            """
          let place = try run.folder.write(Array(document.utf8), to: "doc.meta4")
          let verify = ["verify", "-d", run.folder.path("out")]
          // Steps that have nothing to do, such as Gunzip, are in the log, too.
          let get = try await run.tool(
            ["get", "--metalink", place, "-d", run.folder.path("out"), "--json", "--keep-time", "--name", "{name}"])
          #expect(get.status == 0, "\(get.everything)")
          let plain = try await run.get(["/plain"])
          #expect(plain.status == 0, "\(plain.everything)")

          let intact = try await run.tool(verify)
          #expect(intact.status == 0, "\(intact.everything)")
          #expect(intact.errors.contains("/plain: not verified"), "\(intact.everything)")
          try damage(run.folder.path("out/film"), .edited)
          let requests = run.server.requests.count
          let damaged = try await run.tool(verify)
          #expect(damaged.status == 1 && damaged.errors.contains("1 of 8 pieces"), "\(damaged.everything)")
          #expect(run.server.requests.count == requests)
          let repaired = try await run.tool(verify + ["--repair"])
          #expect(repaired.status == 0, "\(repaired.everything)")
          #expect(try run.folder.read("out/film") == Self.bytes)
          #expect(run.server.requests.dropFirst(requests).map { $0.headers["Range"] } == ["bytes=3145728-4194303"])
          #expect(try await run.tool(verify).status == 0)
          let unknown = try await run.tool(verify + ["nothing"])
          #expect(unknown.status == 2, "\(unknown.everything)")
          #expect(try run.unfinished() == [])
        }
      }

      @Test("a repair that has failed is not taken for a finished file, and goes on with the next command")
      func interruptedTool() async throws {
        let isDown = Watched(false)
        try await DefectRun.with { request in
          isDown.value ? .status(503) : .file(.bytes(Self.bytes), etag: "\"r\"", for: request)
        } _: { run in
          let sum = try await FileDigest.of(file: try run.folder.write(Self.bytes, to: "sum"), algorithm: .sha256)
          let get = try await run.get(["/film"], ["--checksum", "sha256=\(sum.hex)"])
          #expect(get.status == 0, "\(get.everything)")
          try damage(run.folder.path("out/film"), .edited)
          isDown.update { $0 = true }
          let verify = ["verify", "-d", run.folder.path("out"), "--retry", "0"]
          let failed = try await run.tool(verify + ["--repair"])
          #expect(failed.status == 1, "\(failed.everything)")
          isDown.update { $0 = false }
          let unfinished = try await run.tool(verify)
          #expect(unfinished.status == 1 && unfinished.errors.contains("--repair goes on"), "\(unfinished.everything)")
          let repaired = try await run.tool(verify + ["--repair"])
          #expect(repaired.status == 0, "\(repaired.everything)")
          #expect(try run.folder.read("out/film") == Self.bytes)
          #expect(try await run.tool(verify).status == 0)
        }
      }
    }
  }
#endif
