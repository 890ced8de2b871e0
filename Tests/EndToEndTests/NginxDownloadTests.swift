import Downpipe
import DownpipeTesting
import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// The tool against a real nginx: real sockets, real files, a real ledger, real signals.
  @Suite struct NginxDownloadTests {
    @Test(arguments: ["curl", "urlsession"])
    func manySmallFilesStoppedHalfWay(source: String) async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      let count = source == "curl" ? 2000 : 300
      for index in 0..<count {
        try server.add("\(index).bin", DownloadFixtures.pattern(size: 65_536, seed: UInt64(index)))
      }
      let list = try folder.write(
        Array((0..<count).map { server.url("/files/\($0).bin") }.joined(separator: "\n").utf8), to: "urls")
      let arguments = [
        "get", "-i", list, "-d", folder.path("out"), "-j", "16", "--json", "--source", source,
      ]

      let finished = Mutex(0)
      let first = try await Command.downpipe(arguments).run { line, process in
        guard line.contains("\"event\":\"finished\"") else { return }
        let isTime = finished.withLock { finished in
          finished += 1
          return finished == count / 4
        }
        if isTime { kill(process, SIGINT) }
      }
      #expect(first.status == 130)
      let firstNames = Set(Self.names(first, "finished"))
      #expect(firstNames.count < count)
      let listed = try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run().toolLines.count {
        $0.state == "finished"
      }
      #expect(firstNames.count == listed, "what has finished is shown, although the command was interrupted")

      let asked = try server.requests().count
      let second = try await Command.downpipe(arguments).run()
      #expect(second.status == 0, "\(second.errors)")
      #expect(Set(Self.names(second, "finished")).count == count)
      for index in 0..<count {
        let bytes = try folder.read("out/\(index).bin")
        #expect(bytes == DownloadFixtures.pattern(size: 65_536, seed: UInt64(index)))
      }
      // Finished files are not requested again; the one that was being transferred is, once.
      let later = try server.requests().dropFirst(asked)
      #expect(later.count <= count - firstNames.count)
      for name in firstNames.prefix(200) {
        #expect(!later.contains { $0.contains("/files/\((name as NSString).lastPathComponent) ") })
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("out")).count == count + 1)
    }

    /// The queue is longer than a page of the ledger: downloads end before the command has read of them.
    @Test func resumeShowsEachDownloadOnce() async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      let count = 1500
      for index in 0..<count { try server.add("\(index).bin", [UInt8](repeating: UInt8(index % 251), count: 100)) }
      let list = try folder.write(
        Array((0..<count).map { server.url("/files/\($0).bin") }.joined(separator: "\n").utf8), to: "urls")
      let isFirst = Mutex(true)
      let first = try await Command.downpipe(["get", "-i", list, "-d", folder.path("out"), "--json", "-j", "2"]).run {
        line, process in
        guard line.contains("\"event\":\"finished\"") else { return }
        let isTime = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        if isTime { kill(process, SIGINT) }
      }
      #expect(first.status == 130)
      let second = try await Command.downpipe(["resume", "-d", folder.path("out"), "--json", "-j", "100"]).run()
      #expect(second.status == 0, "\(second.errors)")
      let names = Self.names(first, "finished") + Self.names(second, "finished")
      let files = try FileManager.default.contentsOfDirectory(atPath: folder.path("out")).count { $0.hasSuffix(".bin") }
      #expect(names.count == Set(names).count)
      #expect(names.count == files)
    }

    @Test(arguments: ["curl", "urlsession"])
    func aGibibyteArrivesByteIdentical(source: String) async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      let size = source == "curl" ? 1 << 30 : 64 << 20
      try Self.makeLargeFile(at: server.folder.path("files/big"), size: size)
      let outcome = try await Command.downpipe([
        "get", server.url("/files/big"), "-d", folder.path("out"), "--source", source, "--json",
      ]).run()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let compare = try await Command("cmp", [server.folder.path("files/big"), folder.path("out/big")]).run()
      #expect(compare.status == 0, "\(compare.output)")
    }

    @Test("after any signal, the next run resumes", arguments: [SIGINT, SIGTERM, SIGKILL])
    func aSignalLosesNoBytes(signal: Int32) async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      let bytes = DownloadFixtures.pattern(size: 6 << 20, seed: 7)
      try server.add("film", bytes)
      // Older than a minute, so that the Last-Modified of nginx is a strong validator too.
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: server.folder.path("files/film"))
      let first = try await Command.downpipe(["get", server.url("/slow/film"), "-d", folder.path("out"), "--json"])
        .run { line, process in
          guard let progress = Self.object(line), progress["event"] as? String == "progress",
            let received = progress["bytes"] as? Int ?? progress["received"] as? Int, received > 2 << 20
          else { return }
          kill(process, signal)
        }
      #expect(first.status == (signal == SIGKILL ? 128 + SIGKILL : 130))
      #expect(!FileManager.default.fileExists(atPath: folder.path("out/film")))

      let second = try await Command.downpipe(["get", server.url("/slow/film"), "-d", folder.path("out"), "--json"])
        .run()
      #expect(second.status == 0, "\(second.errors)")
      #expect(try folder.read("out/film") == bytes)
      let last = try #require(
        second.lines.compactMap { Self.object(String($0)) }.last { $0["event"] as? String == "finished" })
      let resumedFrom = try #require(last["resumedFrom"] as? Int)
      #expect(resumedFrom >= 1 << 20, "it began at \(resumedFrom)")
      #expect(try server.requests().last?.contains(" 206 ") == true)
    }

    @Test func stepsAndChecksumsInOneCommand() async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      let text = Array(String(repeating: "all work and no play\n", count: 50_000).utf8)
      let plain = try folder.write(text, to: "text")
      _ = try await Command("gzip", ["-k", plain]).run()
      let packed = try folder.read("text.gz")
      try server.add("text.gz", packed)
      let sum = try await Command("sha256sum", [folder.path("text.gz")]).run().output.prefix(64)
      let good = try await Command.downpipe([
        "get", server.url("/files/text.gz"), "-d", folder.path("out"), "--checksum", "sha256=\(sum)", "--gunzip",
        "--move-into", folder.path("done"), "--json",
      ]).run()
      #expect(good.status == 0, "\(good.errors)")
      #expect(try folder.read("done/text") == text)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("out")) == [".downpipe"])

      let wrong = String(repeating: "0", count: 64)
      let bad = try await Command.downpipe([
        "get", server.url("/files/text.gz"), "-d", folder.path("bad"), "--checksum", "sha256=\(wrong)", "--retry", "1",
        "--json",
      ]).run()
      #expect(bad.status == 1)
      #expect(bad.output.contains("\"code\":\"digestMismatch\""))
      #expect(!FileManager.default.fileExists(atPath: folder.path("bad/text.gz")))
    }

    @Test("the digest of a large file is checked: a right one passes, a wrong one fails", arguments: [true, false])
    func digestsOfLargeFiles(isRight: Bool) async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      let path = server.folder.path("files/film")
      try Self.makeLargeFile(at: path, size: 32 << 20)
      let right = try await Command("sha256sum", [path]).run().output.prefix(64)
      let sum = isRight ? String(right) : String(right.dropLast()) + (right.last == "0" ? "1" : "0")
      let outcome = try await Command.downpipe([
        "get", server.url("/files/film"), "-d", folder.path("out"), "--checksum", "sha256=\(sum)", "--retry", "0",
        "--json",
      ]).run()
      #expect(outcome.status == (isRight ? 0 : 1), "\(outcome.errors)")
      #expect(outcome.output.contains("\"code\":\"digestMismatch\"") == !isRight)
      #expect(FileManager.default.fileExists(atPath: folder.path("out/film")) == isRight)
    }

    @Test func listRemoveAndResumeWorkOnALedger() async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      try server.add("film", DownloadFixtures.pattern(size: 6 << 20, seed: 7))
      _ = try await Command.downpipe(["get", server.url("/slow/film"), "-d", folder.path("out"), "--json"])
        .run { line, process in
          if line.contains("\"progress\"") { kill(process, SIGINT) }
        }
      let listed = try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run()
      #expect(listed.status == 0, "\(listed.errors)")
      #expect(listed.lines.count == 1)
      let resumed = try await Command.downpipe(["resume", "-d", folder.path("out"), "--json"]).run()
      #expect(resumed.status == 0, "\(resumed.errors)")
      #expect(try folder.read("out/film") == DownloadFixtures.pattern(size: 6 << 20, seed: 7))
      let removed = try await Command.downpipe(["remove", "--all", "-d", folder.path("out")]).run()
      #expect(removed.status == 0, "\(removed.errors)")
      #expect(try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run().lines.isEmpty)
      #expect(FileManager.default.fileExists(atPath: folder.path("out/film")))
    }

    // MARK: Helpers

    static func object(_ line: String) -> [String: Any]? {
      (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any]
    }

    static func names(_ outcome: Command.Outcome, _ event: String) -> [String] {
      outcome.lines.compactMap { object(String($0)) }.filter { $0["event"] as? String == event }
        .compactMap { $0["url"] as? String }
    }

    /// Writes a file in pieces, with a pattern that does not repeat within a block.
    static func makeLargeFile(at path: String, size: Int) throws {
      _ = FileManager.default.createFile(atPath: path, contents: nil)
      let handle = try FileHandle(forWritingTo: URL(filePath: path))
      defer { try? handle.close() }
      let piece = 1 << 20
      var block = DownloadFixtures.pattern(size: piece, seed: 5)
      for index in 0..<(size / piece) {
        withUnsafeBytes(of: UInt64(index)) { number in
          for (offset, byte) in number.enumerated() { block[offset] = byte }
        }
        try handle.write(contentsOf: Data(block))
      }
    }
  }
}
