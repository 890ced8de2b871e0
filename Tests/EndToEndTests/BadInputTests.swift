import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Bad input of every kind gets a typed error and the right exit status, and never crashes the tool.
  @Suite struct BadInputTests {
    struct Case: Sendable, CustomTestStringConvertible {
      let what: String
      let arguments: [String]
      let status: Int32
      let code: String?
      var testDescription: String { what }
      init(_ what: String, _ arguments: [String], status: Int32, code: String? = nil) {
        self.what = what
        self.arguments = arguments
        self.status = status
        self.code = code
      }
    }

    @Test(arguments: [
      Case("no URL", ["get"], status: 2),
      Case("unknown option", ["get", "--no-such-thing", "http://127.0.0.1/"], status: 2),
      Case("number expected", ["get", "-j", "many", "http://127.0.0.1/"], status: 2),
      Case("a name for two", ["get", "-o", "x", "http://127.0.0.1/a", "http://127.0.0.1/b"], status: 2),
      Case("bad checksum", ["get", "--checksum", "sha256=xyz", "http://127.0.0.1/a"], status: 2),
      Case("bad header", ["get", "-H", "no colon", "http://127.0.0.1/a"], status: 2),
      Case("missing list", ["get", "-i", "/no/such/list"], status: 2),
      Case("unknown scheme", ["get", "gopher://127.0.0.1/a"], status: 2, code: "unsupportedURL"),
      Case("no scheme", ["get", "127.0.0.1/a"], status: 2, code: "unsupportedURL"),
      Case("no host", ["get", "http://"], status: 2),
      Case("no server listens", ["get", "http://127.0.0.1:1/a", "--retry", "1"], status: 1, code: "network"),
    ])
    func arguments(_ test: Case) async throws {
      let folder = try TemporaryFolder()
      let outcome = try await Command.downpipe(test.arguments + ["-d", folder.path("out"), "--json"]).run()
      #expect(outcome.status == test.status, "\(outcome.output)\n\(outcome.errors)")
      if let code = test.code { #expect(outcome.output.contains("\"code\":\"\(code)\""), "\(outcome.output)") }
      if test.status == 2 { #expect(!outcome.errors.isEmpty) }
    }

    @Test func folders() async throws {
      let server = try await NginxServer()
      let folder = try TemporaryFolder()
      try server.add("a", [1, 2, 3])
      _ = try folder.write([], to: "file")
      let inAFile = try await Command.downpipe(["get", server.url("/files/a"), "-d", folder.path("file"), "--json"])
        .run()
      #expect(inAFile.status != 0)
      #expect(!(inAFile.errors + inAFile.output).isEmpty)

      try FileManager.default.createDirectory(atPath: folder.path("out/a"), withIntermediateDirectories: true)
      let onAFolder = try await Command.downpipe([
        "get", server.url("/files/a"), "-d", folder.path("out"), "--on-conflict", "replace", "--retry", "1", "--json",
      ]).run()
      #expect(onAFolder.status == 1)
      #expect(onAFolder.output.contains("\"code\":\"alreadyExists\""), "\(onAFolder.output)")

      let outside = try await Command.downpipe([
        "get", server.url("/files/a"), "-d", folder.path("out"), "-o", "../escaped", "--json",
      ]).run()
      #expect(outside.status != 0)
      #expect(!FileManager.default.fileExists(atPath: folder.path("escaped")))
    }

    struct Hostile: Sendable, CustomTestStringConvertible {
      let name: String
      let reply: String
      let codes: Set<String>
      var testDescription: String { name }
    }

    static let hostile: [Hostile] = [
      Hostile(
        name: "negative length", reply: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        codes: ["invalidResponse", "network"]),
      Hostile(
        name: "two lengths", reply: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        codes: ["invalidResponse"]),
      Hostile(
        name: "lying length", reply: "HTTP/1.1 200 OK\r\nContent-Length: 50\r\nConnection: close\r\n\r\nhello",
        codes: ["lengthMismatch", "network"]),
      Hostile(
        name: "garbage", reply: "\u{1}\u{2}\u{3} what is this\r\n\r\n",
        codes: ["invalidResponse", "network"]),
      Hostile(
        name: "nothing", reply: "",
        codes: ["network", "invalidResponse"]),
      Hostile(
        name: "bad chunks", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        codes: ["invalidResponse", "network"]),
      Hostile(
        name: "unasked range",
        reply: "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\n\r\nhello",
        codes: ["wrongRange"]),
    ]

    @Test(arguments: hostile)
    func hostileServer(_ test: Hostile) async throws {
      let reply = test.reply
      let folder = try TemporaryFolder()
      let server = try await ScriptedHTTPServer.start { _ in
        ScriptedReply([.send(reply), .close])
      }
      let outcome = try await Command.downpipe([
        "get", "\(server.url("/x"))", "-d", folder.path("out"), "--retry", "0", "--json",
      ]).run()
      await server.shutdown()
      #expect(outcome.status == 1, "\(outcome.errors)")
      #expect(test.codes.contains { outcome.output.contains("\"code\":\"\($0)\"") }, "\(outcome.output)")
      #expect(!FileManager.default.fileExists(atPath: folder.path("out/x")))
    }

    @Test func redirectLoop() async throws {
      let folder = try TemporaryFolder()
      let server = try await ScriptedHTTPServer.start { request in .redirect(to: request.path + "x") }
      let outcome = try await Command.downpipe([
        "get", "\(server.url("/x"))", "-d", folder.path("out"), "--retry", "0", "--json",
      ]).run()
      await server.shutdown()
      #expect(outcome.status == 1)
      #expect(outcome.output.contains("\"code\":\"tooManyRedirects\""), "\(outcome.output)")
    }
  }
}
