import ChildPipe
import Dispatch
import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// How the tool ends, waits, and fails.
  @Suite(.serialized) struct ToolDefectTests {
    // MARK: Signals

    /// Standard output is a full pipe without a reader.
    @Test(arguments: [SIGTERM, SIGINT])
    func aSignalEndsTheToolWithAFullPipe(_ signal: Int32) async throws {
      let held = ServerGate()
      defer { held.open() }
      let content = ScriptedContent.pattern(size: 300_000)
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return request.path == "/held" && request.number == 2 ? reply.held(at: held, after: 100_000) : reply
      } _: { run in
        let output = try FullPipe()
        // Its reading end must stay open.
        defer { withExtendedLifetime(output) {} }
        let process = Process()
        process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
          .appending(path: "downpipe")
        process.arguments = [
          "get", "\(run.server.url("/first"))", "\(run.server.url("/held"))", "-j", "1", "--json", "-d",
          run.folder.path("out"),
        ]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output.writer
        process.standardError = FileHandle.nullDevice
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        let pid = process.processIdentifier
        // The first file is finished, so there was something to write.
        try await run.server.until { $0.requestCount == 2 && $0.bytesSent >= 400_000 }
        let isOver = await withCheckedContinuation { continuation in
          Thread.detachNewThread {
            kill(pid, signal)
            // A tool that waits for its reader would never end. How long it waits is tested with its writes.
            let isOver = ended.wait(timeout: .now() + .seconds(Command.hangLimit)) == .success
            if !isOver {
              kill(pid, SIGKILL)
              ended.wait()
            }
            continuation.resume(returning: isOver)
          }
        }
        #expect(isOver, "the tool had to be killed")
        held.open()
        let outcome = try await run.get(["/first", "/held"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        for name in ["first", "held"] {
          let isIdentical = (try? run.folder.read("out/\(name)")) == content.allBytes
          #expect(isIdentical, "\(name)")
        }
      }
    }

    /// A full pipe.
    private struct FullPipe {
      private let pipe: ChildPipe
      var writer: FileHandle { pipe.fileHandleForWriting }

      init() throws {
        pipe = try ChildPipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        let flags = fcntl(descriptor, F_GETFL)
        try #require(fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0)
        var byte: UInt8 = 0x0A
        while write(descriptor, &byte, 1) == 1 {}
        try #require(errno == EAGAIN && fcntl(descriptor, F_SETFL, flags) == 0)
      }
    }

    // MARK: Waiting

    @Test func aRepeatedCommandDoesNotWaitForAnOldBackOff() async throws {
      try await DefectRun.with { request in
        request.number == 1
          ? .status(503, retryAfter: .seconds(1800)) : .file(.text("film"), etag: "\"v1\"", for: request)
      } _: { run in
        let first = try await run.get(["/film"]) { line, process in
          if let line = ToolLine(line), line.state == "waiting", line.reason != nil { kill(process, SIGINT) }
        }
        #expect(first.status == 130, "no wait was reported: \(first.everything)")
        let second = try await run.get(["/film"]) { line, process in
          if let line = ToolLine(line), line.state == "waiting", line.reason != nil { kill(process, SIGINT) }
        }
        #expect(second.status == 0, "\(second.everything)")
        #expect(run.server.requests.count == 2)
        #expect((try? run.folder.read("out/film")) == Array("film".utf8))
      }
    }

    @Test func theToolReportsItsWaitEachTime() async throws {
      try await DefectRun.with { _ in
        .status(503, retryAfter: .seconds(1800))
      } _: { run in
        for attempt in 1...2 {
          let outcome = try await run.get(["/film"]) { line, process in
            if let line = ToolLine(line), line.state == "waiting", line.reason != nil { kill(process, SIGINT) }
          }
          #expect(outcome.status == 130, "\(outcome.everything)")
          let reasons = outcome.toolLines.filter { $0.state == "waiting" }.compactMap(\.reason)
          #expect(reasons.contains { $0.contains("503") || $0.contains("attempt") }, "\(outcome.everything)")
          #expect(run.server.requests.count == attempt, "each command sends its request at once")
        }
      }
    }

    // MARK: Descriptors

    /// The tool can raise the soft limit; with the hard one it has to run fewer downloads at once.
    @Test(arguments: ["ulimit -S -n 64", "ulimit -n 64", "ulimit -n 30"])
    func fewDescriptorsFailNoDownload(_ limit: String) async throws {
      let count = 40
      let content = ScriptedContent.pattern(size: 20_000, seed: 8)
      try await DefectRun.with { request in
        ScriptedReply.file(content, etag: "\"v1\"", for: request).after(.throttle(bytesPerSecond: 40_000))
      } _: { run in
        let outcome = try await run.get((0..<count).map { "/\($0)" }, ["-j", "\(count)"], shell: limit)
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.results.filter { $0.event == "finished" }.count == count)
        let wrong = (0..<count).filter { (try? run.folder.read("out/\($0)")) != content.allBytes }
        #expect(wrong == [])
      }
    }

    // MARK: Files left on disk

    @Test func aDownloadWithoutBytesLeavesNoFiles() async throws {
      try await DefectRun.with { request in
        switch request.path {
        case "/missing": .status(404)
        case "/broken": .status(500)
        case "/closed": .closed
        case "/garbage": .garbage
        case "/head": ScriptedReply([.head(200, ["Content-Length": "5"]), .close])
        default: ScriptedReply([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello"), .close])
        }
      } _: { run in
        let paths = ["/missing", "/broken", "/closed", "/garbage", "/head", "/coded"]
        let outcome = try await run.get(paths, ["http://127.0.0.1:1/refused", "--retry", "0"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(outcome.results.filter { $0.event == "failed" }.count == paths.count + 1, "\(outcome.everything)")
        #expect(try run.unfinished() == [])
        let orphans = try await run.tool(["list", "--orphans", "-d", run.folder.path("out"), "--json"])
        #expect(orphans.status == 0 && orphans.lines.isEmpty, "\(orphans.everything)")
      }
    }

    // MARK: Paths that cannot be replaced

    @Test(arguments: ["a pipe", "a link to a device", "a dangling link", "a folder"], [true, false])
    func onlyRegularFilesAreReplaced(_ what: String, _ isNamed: Bool) async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let path = run.folder.path("out/film")
        try FileManager.default.createDirectory(
          atPath: run.folder.path("out"), withIntermediateDirectories: true)
        switch what {
        case "a pipe": #expect(mkfifo(path, 0o600) == 0)
        case "a link to a device": #expect(symlink("/dev/null", path) == 0)
        case "a dangling link": #expect(symlink("nowhere", path) == 0)
        default: #expect(mkdir(path, 0o700) == 0)
        }
        var before = stat()
        #expect(lstat(path, &before) == 0)
        let outcome = try await run.get(
          ["/film"], ["--on-conflict", "replace", "--retry", "0"] + (isNamed ? ["-o", "film"] : []))
        var after = stat()
        #expect(lstat(path, &after) == 0 && after.st_ino == before.st_ino && after.st_mode == before.st_mode)
        #expect([1, 2].contains(outcome.status), "\(outcome.everything)")
        let words = ["pipe", "link", "folder", "directory", "regular"]
        #expect(words.contains { outcome.everything.contains($0) }, "\(outcome.everything)")
        #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/nowhere")))
      }
    }

    @Test func aRegularFileIsReplaced() async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        _ = try run.folder.write(Array("another film, which is longer".utf8), to: "out/film")
        let outcome = try await run.get(["/film"], ["--on-conflict", "replace"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(try run.folder.read("out/film") == Array("film".utf8))
      }
    }
  }
}
