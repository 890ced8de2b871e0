import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Mirrors of one file that lie, die or are missing: the file is right in every case.
  @Suite struct SegmentMirrorTests {
    /// What a mirror does.
    enum Mirror: String, CaseIterable, Sendable {
      /// Another file of the same length, with a tag of its own.
      case liar
      /// Another file of the same length, with the tag of the first server.
      case liarWithTheSameTag
      /// The file up to its middle, and then another one.
      case liarBehindTheMiddle
      /// Every reply ends by a reset after 300,000 bytes.
      case dying
      /// The first reply ends, and then there is no server.
      case dead
      case notFound
      case longer
      case shorter
      /// The whole file for each request.
      case withoutRanges
      case withoutTag
      /// A page of HTML with the status 200.
      case page
      case unavailable
      case good
    }

    private static let content = ScriptedContent.pattern(size: 6 << 20, seed: 77)
    private static let lie = ScriptedContent.pattern(size: content.size, seed: 78)
    private static let halfLie = ScriptedContent.bytes(
      content.bytes(in: 0..<content.size / 2) + lie.bytes(in: content.size / 2..<lie.size))
    private static let longer = ScriptedContent.bytes(content.allBytes + [1, 2, 3])
    private static let shorter = ScriptedContent.bytes(content.allBytes.dropLast(3))

    private static func reply(_ mirror: Mirror, to request: ScriptedRequest) -> ScriptedReply {
      switch mirror {
      case .liar: .file(lie, etag: "\"m\"", for: request)
      case .liarWithTheSameTag: .file(lie, etag: "\"1\"", for: request)
      case .liarBehindTheMiddle: .file(halfLie, etag: "\"m\"", for: request)
      case .dying: .file(content, etag: "\"m\"", for: request).truncated(after: 300_000, reset: true)
      case .dead:
        request.number == 1 ? .file(content, etag: "\"m\"", for: request).truncated(after: 300_000) : .closed
      case .notFound: .status(404)
      case .longer: .file(longer, etag: "\"m\"", for: request)
      case .shorter: .file(shorter, etag: "\"m\"", for: request)
      case .withoutRanges: .file(content, etag: "\"m\"", supportsRanges: false, for: request)
      case .withoutTag: .file(content, for: request)
      case .page: ScriptedReply(200, ["Content-Type": "text/html"], body: .text("<html>log in first</html>"))
      case .unavailable: .status(503)
      case .good: .file(content, etag: "\"m\"", for: request)
      }
    }

    /// A server of the file at 2 MiB a second for each connection, and mirrors at twice that.
    private func serve(_ mirrors: [Mirror], link: Bool = false) async throws -> [ScriptedHTTPServer] {
      var servers: [ScriptedHTTPServer] = []
      for mirror in mirrors {
        servers.append(
          try await .start { Self.reply(mirror, to: $0).after(.throttle(bytesPerSecond: 4 << 20)) })
      }
      let links = servers.map { "<\($0.url("/film"))>; rel=duplicate" }.joined(separator: ", ")
      let first = try await ScriptedHTTPServer.start { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"1\"", for: request)
          .after(.throttle(bytesPerSecond: 2 << 20))
        return link ? reply.setting(["Link": links]) : reply
      }
      return [first] + servers
    }

    /// Runs the tool with the servers.
    private func get(
      _ servers: [ScriptedHTTPServer], _ options: [String], givesMirrors: Bool = true
    ) async throws -> (outcome: Command.Outcome, isIdentical: Bool) {
      let folder = try TemporaryFolder()
      var arguments =
        ["get", "\(servers[0].url("/film"))", "-d", folder.path("out"), "--json", "--retry", "4"] + options
      if givesMirrors { for server in servers.dropFirst() { arguments += ["--mirror", "\(server.url("/film"))"] } }
      let outcome = try await Command.downpipe(arguments).run()
      return (outcome, (try? folder.read("out/film")) == Self.content.allBytes)
    }

    @Test("one mirror", arguments: Mirror.allCases)
    func one(mirror: Mirror) async throws {
      let servers = try await serve([mirror])
      let (outcome, isIdentical) = try await get(servers, ["-s", "4"])
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(isIdentical, "\(outcome.everything)")
      let asked = servers[1].requests
      #expect(!asked.isEmpty, "the mirror was not asked")
      if mirror == .good { #expect(servers[1].activity.bytesSent > 300_000, "the mirror brought nothing") }
      // A mirror that has shown other bytes is not asked for more.
      if [.liar, .liarWithTheSameTag, .notFound, .longer, .shorter, .page].contains(mirror) {
        #expect(asked.count <= 2, "\(asked.map(\.range))")
      }
      for server in servers { await server.shutdown() }
    }

    @Test("all of them at once, with and without segments", arguments: ["1", "8"])
    func all(segments: String) async throws {
      // Comparing cannot find a mirror that has the right bytes at the start of a segment, and others from there to the
      // end of the file: that takes a digest.
      for hasDigest in [true, false] {
        let servers = try await serve(
          hasDigest ? Mirror.allCases : Mirror.allCases.filter { $0 != .liarBehindTheMiddle })
        let digest = try FileDigest.sha256(of: Self.content.allBytes).hex
        let (outcome, isIdentical) = try await get(
          servers, ["-s", segments] + (hasDigest ? ["--checksum", "sha256=\(digest)"] : []))
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(isIdentical, "\(outcome.everything)")
        if segments == "1" {
          #expect(servers.dropFirst().allSatisfy { $0.requests.isEmpty }, "without segments, mirrors are fall-backs")
        }
        for server in servers { await server.shutdown() }
      }
    }

    @Test("a mirror that lies is found out by the digest, and its bytes are fetched again")
    func digest() async throws {
      let digest = try FileDigest.sha256(of: Self.content.allBytes).hex
      let servers = try await serve([.liarBehindTheMiddle, .good])
      let (outcome, isIdentical) = try await get(servers, ["-s", "6", "--checksum", "sha256=\(digest)"])
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(isIdentical, "\(outcome.everything)")
      for server in servers { await server.shutdown() }
    }

    @Test("the first server is gone: a mirror serves the file", arguments: ["1", "4"])
    func firstIsGone(segments: String) async throws {
      let gone = try await ScriptedHTTPServer.start { _ in .status(404) }
      let good = try await ScriptedHTTPServer.start { Self.reply(.good, to: $0) }
      let (outcome, isIdentical) = try await get([gone, good], ["-s", segments])
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(isIdentical, "\(outcome.everything)")
      await gone.shutdown()
      await good.shutdown()
    }

    @Test("the first server dies half way: the mirrors bring the rest")
    func firstDies() async throws {
      let first = try await ScriptedHTTPServer.start { request in
        request.number > 1
          ? .closed
          : .file(Self.content, etag: "\"1\"", for: request).truncated(after: 2 << 20, reset: true)
            .after(.throttle(bytesPerSecond: 8 << 20))
      }
      let servers = try await serve([.good, .dying])
      let (outcome, isIdentical) = try await get([first] + servers.dropFirst(), ["-s", "3"])
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(isIdentical, "\(outcome.everything)")
      await first.shutdown()
      for server in servers { await server.shutdown() }
    }

    // MARK: Link

    /// The option with the digest of the file: without one, the duplicates that a server names are ignored.
    private func checksum() async throws -> [String] {
      let folder = try TemporaryFolder()
      try Data(Self.content.allBytes).write(to: URL(filePath: folder.path("film")))
      return ["--checksum", "sha256=\(try await Command("sha256sum", [folder.path("film")]).run().output.prefix(64))"]
    }

    @Test(
      "without a digest (RFC 6249 §6), and without segments, the duplicates that a server names are not asked",
      arguments: [(segments: "8", hasDigest: false), ("1", true)])
    func unusedLinks(segments: String, hasDigest: Bool) async throws {
      let servers = try await serve([.good], link: true)
      let options = hasDigest ? try await checksum() : []
      let (outcome, isIdentical) = try await get(servers, ["-s", segments] + options, givesMirrors: false)
      #expect(outcome.status == 0 && isIdentical, "\(outcome.everything)")
      #expect(servers[1].requests.isEmpty)
      for server in servers { await server.shutdown() }
    }

    @Test("the duplicates that a server names are used (RFC 6249), and a lie among them does no harm")
    func links() async throws {
      let servers = try await serve([.good, .liar, .notFound], link: true)
      let (outcome, isIdentical) = try await get(servers, try await ["-s", "8"] + checksum(), givesMirrors: false)
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(isIdentical, "\(outcome.everything)")
      #expect(!servers[1].requests.isEmpty, "the duplicate was not asked")
      for server in servers { await server.shutdown() }
    }

    @Test("neither mirrors nor duplicates get what is meant for the first server", arguments: [true, false])
    func secrets(givesMirrors: Bool) async throws {
      let servers = try await serve([.good], link: !givesMirrors)
      let (outcome, isIdentical) = try await get(
        servers, try await ["-s", "4", "--user", "me:hunter2", "-H", "X-Api-Key: hunter2"] + checksum(),
        givesMirrors: givesMirrors)
      #expect(outcome.status == 0 && isIdentical, "\(outcome.everything)")
      #expect(servers[0].requests.allSatisfy { $0.headers["Authorization"] == "Basic bWU6aHVudGVyMg==" })
      #expect(!servers[1].requests.isEmpty)
      for request in servers[1].requests {
        #expect(request.headers["Authorization"] == nil && request.headers["X-Api-Key"] == nil, "\(request)")
      }
      for server in servers { await server.shutdown() }
    }

    /// The entry of netrc for another host is for who names that host: the user, and not the first server.
    @Test("a duplicate gets no netrc entry, and a mirror gets that of its host", arguments: [true, false])
    func netrc(givesMirror: Bool) async throws {
      let mirror = try await ScriptedHTTPServer.start { Self.reply(.good, to: $0) }
      let url = "http://localhost:\(mirror.port)/film"
      let digest = try FileDigest.sha256(of: Self.content.allBytes)
      let promise = "sha-256=:\(Data(digest.bytes).base64EncodedString()):"
      let first = try await ScriptedHTTPServer.start { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"1\"", for: request)
          .after(.throttle(bytesPerSecond: 2 << 20))
        return givesMirror
          ? reply : reply.setting(["Link": "<\(url)>; rel=duplicate", "Repr-Digest": promise])
      }
      let folder = try TemporaryFolder()
      let entries = "machine 127.0.0.1 login me password first\nmachine localhost login me password second\n"
      let netrc = try folder.write(Array(entries.utf8), to: "netrc")
      let (outcome, isIdentical) = try await get(
        [first], ["-s", "4", "--netrc-file", netrc] + (givesMirror ? ["--mirror", url] : []))
      #expect(outcome.status == 0 && isIdentical, "\(outcome.everything)")
      let fields = { (server: ScriptedHTTPServer) in Set(server.requests.map { $0.headers["Authorization"] }) }
      #expect(fields(first) == ["Basic \(Data("me:first".utf8).base64EncodedString())"])
      #expect(fields(mirror) == [givesMirror ? "Basic \(Data("me:second".utf8).base64EncodedString())" : nil])
      await first.shutdown()
      await mirror.shutdown()
    }

    @Test("a line of a list names the mirrors of its file")
    func list() async throws {
      let servers = try await serve([.notFound, .good])
      let folder = try TemporaryFolder()
      let line = servers.map { "\($0.url("/film"))" }.joined(separator: "\t")
      let list = try folder.write(Array("# a list\n\(line)\n".utf8), to: "list")
      let outcome = try await Command.downpipe([
        "get", "-i", list, "-d", folder.path("out"), "--json", "-s", "4",
      ]).run()
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(outcome.results.map(\.url) == ["\(servers[0].url("/film"))"])
      let isIdentical = (try? folder.read("out/film")) == Self.content.allBytes
      #expect(isIdentical)
      #expect(!servers[2].requests.isEmpty)
      for server in servers { await server.shutdown() }
    }
  }
}
