import Downpipe
import DownpipeTesting
import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// Several connections to one file, against a real nginx: which requests are sent, and how many bytes are fetched.
  @Suite struct SegmentTests {
    /// A request in the log of nginx.
    struct Logged {
      let connection: Substring
      let status: Substring
      let bytes: Int64
      let range: Substring

      init?(_ line: Substring) {
        let words = line.split(separator: " ", maxSplits: 4)
        guard words.count == 5, words[0] == "range", let bytes = Int64(words[3]) else { return nil }
        (connection, status, self.bytes, range) = (words[1], words[2], bytes, words[4])
      }
    }

    /// nginx with a file `film`, at 8 MiB a second for each connection in `/each/`. In `/two/`, at most two connections
    /// are served at once.
    private func serve(_ size: Int, refusing status: Int = 503) async throws -> NginxServer {
      let server = try await NginxServer(
        more: """
          location /each/ { rewrite ^/each/(.*)$ /files/$1 break; limit_rate 8m; }
          location /two/ {
            rewrite ^/two/(.*)$ /files/$1 break; limit_rate 4m; limit_conn all 2; limit_conn_status \(status);
          }
          """,
        http: """
          limit_conn_zone $binary_remote_addr zone=all:1m;
          log_format ranges 'range $connection $status $body_bytes_sent $http_range';
          """, format: "ranges")
      try NginxDownloadTests.makeLargeFile(at: server.folder.path("files/film"), size: size)
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: server.folder.path("files/film"))
      return server
    }

    /// Runs the tool and checks the file.
    private func get(
      _ server: NginxServer, _ path: String, _ options: [String] = [], _ location: SourceLocation = #_sourceLocation
    ) async throws -> Command.Outcome {
      let folder = try TemporaryFolder()
      let outcome = try await Command.downpipe(
        ["get", server.url(path), "-d", folder.path("out"), "--json"] + options
      ).run()
      #expect(outcome.status == 0, "\(outcome.everything)", sourceLocation: location)
      let compared = try await Command("cmp", [server.folder.path("files/film"), folder.path("out/film")]).run()
      #expect(compared.status == 0, "\(compared.everything)", sourceLocation: location)
      return outcome
    }

    @Test(
      "the connections are as many as asked for, their ranges are open, and no bytes come twice", arguments: [2, 8])
    func exactly(count: Int) async throws {
      let size = 128 << 20
      let server = try await serve(size)
      let outcome = try await get(server, "/each/film", ["-s", "\(count)"])
      let log = try server.requests().compactMap(Logged.init)
      #expect(log.count >= count && log.count(where: { $0.range == "-" }) == 1, "\(log)")
      #expect(Set(log.map(\.connection)).count >= count, "\(log)")
      // A range that ends before the file would not let a connection take over from its neighbour. Later ones end where
      // bytes are on disk already.
      #expect(log.filter { $0.range != "-" }.allSatisfy { $0.status == "206" }, "\(log)")
      #expect(log.count { $0.range.hasPrefix("bytes=") && $0.range.hasSuffix("-") } >= count - 1, "\(log)")
      let fetched = try #require(outcome.results.last?.bytesFetched)
      // What was on its way where another connection had begun. On a busy machine that is more.
      #expect(
        fetched >= size && fetched <= size + log.count << 20, "\(fetched) of \(size) bytes, \(log.count) requests")
    }

    @Test("one connection, for a file that is small, and where segments are switched off", arguments: [nil, "1"])
    func single(segments: String?) async throws {
      let server = try await serve((segments == nil ? 8 : 48) << 20)
      _ = try await get(server, "/each/film", segments.map { ["-s", $0] } ?? [])
      #expect(try server.requests().compactMap(Logged.init).map(\.range) == ["-"])
    }

    @Test("without the option, a large file gets as many connections as pay, up to 4")
    func automatic() async throws {
      let server = try await serve(96 << 20)
      _ = try await get(server, "/each/film")
      let connections = Set(try server.requests().compactMap(Logged.init).map(\.connection))
      #expect(connections.count >= 2, "\(connections)")
    }

    @Test("a server that refuses a third connection is not asked without end", arguments: [503, 429])
    func refusals(status: Int) async throws {
      let server = try await serve(24 << 20, refusing: status)
      let outcome = try await get(server, "/two/film", ["-s", "6"])
      #expect(outcome.results.last?.attempts == 1, "\(outcome.everything)")
      let log = try server.requests().compactMap(Logged.init)
      let refused = log.count { $0.status == "\(status)" }
      #expect(refused >= 1 && refused <= 24, "\(log)")
      #expect(log.count { $0.status == "206" } >= 1, "\(log)")
    }

    @Test("without validators and ranges, there is one connection")
    func withoutRanges() async throws {
      let server = try await serve(16 << 20)
      _ = try await get(server, "/plain/film", ["-s", "8"])
      #expect(try server.requests().compactMap(Logged.init).map(\.range) == ["-"])
    }

    @Test(
      "with a weak validator, or without one, there is one connection", arguments: ["W/\"1\"", nil], [true, false])
    func weakValidator(tag: String?, supportsRanges: Bool) async throws {
      let content = ScriptedContent.pattern(size: 8 << 20, seed: 3)
      try await withScriptedServer { request in
        .file(content, etag: tag, supportsRanges: supportsRanges, for: request).after(
          .throttle(bytesPerSecond: 16 << 20))
      } _: { server in
        let folder = try TemporaryFolder()
        let outcome = try await Command.downpipe([
          "get", "\(server.url("/film"))", "-d", folder.path("out"), "-s", "8", "--json",
        ]).run()
        #expect(outcome.status == 0, "\(outcome.everything)")
        let isIdentical = try folder.read("out/film") == content.allBytes
        #expect(isIdentical)
        #expect(server.requests.map(\.range) == [nil])
      }
    }

    @Test("a strong validator, and a server that ignores ranges: the whole file over the first connection")
    func rangesAreIgnored() async throws {
      let content = ScriptedContent.pattern(size: 8 << 20, seed: 3)
      try await withScriptedServer { request in
        ScriptedReply(200, ["ETag": "\"1\""], body: content).after(.throttle(bytesPerSecond: 8 << 20))
      } _: { server in
        let folder = try TemporaryFolder()
        let outcome = try await Command.downpipe([
          "get", "\(server.url("/film"))", "-d", folder.path("out"), "-s", "4", "--json",
        ]).run()
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.results.last?.bytesFetched == content.size, "\(outcome.everything)")
        let isIdentical = try folder.read("out/film") == content.allBytes
        #expect(isIdentical)
        #expect(server.requests.count <= 5, "\(server.requests.map(\.range))")
      }
    }

    @Test("a limit per host counts the connections of all downloads")
    func limitPerHost() async throws {
      let content = ScriptedContent.pattern(size: 6 << 20, seed: 9)
      try await withScriptedServer { request in
        .file(content, etag: "\"1\"", for: request).after(.throttle(bytesPerSecond: 2 << 20))
      } _: { server in
        let folder = try TemporaryFolder()
        let source = CountedSource(HTTPSource())
        let downloader = try await Downloader {
          source
          Limits(concurrent: 2, perHost: 3)
          Segmented(connections: 8, minimumSize: 1)
          FileStore(folder.path)
        }
        for name in ["a", "b"] {
          try await downloader.add(DownloadRequest(server.url("/\(name)"), id: DownloadID(name)))
        }
        try await downloader.waitUntilIdle()
        for name in ["a", "b"] {
          #expect(try await downloader.status(of: DownloadID(name))?.state.phase == .finished)
          let isIdentical = (try? folder.read(name)) == content.allBytes
          #expect(isIdentical, "\(name)")
        }
        #expect(source.most == 3, "at most three at once, and as many as that")
        await downloader.shutdown()
      }
    }
  }
}

/// Counts the replies of a source that are open at once.
final class CountedSource: Source, SourceSession {
  private let base: HTTPSource
  private let session = Mutex<(any SourceSession)?>(nil)
  private let counts = Mutex((open: 0, most: 0))

  init(_ base: HTTPSource) { self.base = base }

  /// The most replies that were open at once.
  var most: Int { counts.withLock { $0.most } }

  func accepts(_ url: URL) -> Bool { base.accepts(url) }

  func start(in context: SourceContext) async throws -> any SourceSession {
    let started = try await base.start(in: context)
    session.withLock { $0 = started }
    return self
  }

  func stop() async { await session.withLock { $0 }?.stop() }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    guard let session = session.withLock({ $0 }) else { throw CancellationError() }
    begin()
    do {
      var reply = try await session.open(request)
      let body = reply.body
      // A body may be discarded more than once, and after it was read.
      let isOpen = Watched(true)
      let end: @Sendable () -> Void = { if isOpen.update({ exchange(&$0, with: false) }) { self.end() } }
      reply.body = .pushing(
        discard: {
          body.discard()
          end()
        }
      ) { sink in
        defer { end() }
        return try await body.forEachChunk { try sink($0) }
      }
      return reply
    } catch {
      end()
      throw error
    }
  }

  private func begin() {
    counts.withLock { counts in
      counts.open += 1
      counts.most = max(counts.most, counts.open)
    }
  }

  private func end() { counts.withLock { $0.open -= 1 } }
}
