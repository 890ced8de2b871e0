import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// `--metalink`.
  @Suite struct ToolMetalinkTests {
    private static let film = DownloadFixtures.pattern(size: 50_000)

    private func document(_ body: String) -> String {
      #"<?xml version="1.0" encoding="UTF-8"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">\#(body)</metalink>"#
    }

    private func file(_ name: String, _ urls: [String], _ more: String = "") -> String {
      let places = urls.enumerated().map { "<url priority=\"\($0.offset + 1)\">\($0.element)</url>" }.joined()
      return "<file name=\"\(name)\"><size>50000</size>\(more)\(places)</file>"
    }

    private func run(_ body: (DefectRun, Watched<String>) async throws -> Void) async throws {
      let text = Watched("")
      try await DefectRun.with { request in
        switch request.path {
        case "/doc.meta4": .file(.text(text.value), mediaType: "application/metalink4+xml", for: request)
        case "/gone": .status(404)
        default: .file(.bytes(Self.film), etag: "\"v1\"", for: request)
        }
      } _: {
        try await body($0, text)
      }
    }

    @Test(arguments: [true, false])
    func filesOfADocument(isLocal: Bool) async throws {
      try await run { run, text in
        func url(_ path: String) -> String { "\(run.server.url(path))" }
        let xml = document(
          file("film", [url("/gone"), url("/film")]) + file("extra/deep/other", [url("/other")])
            + file("../evil", [url("/evil")]))
        text.update { $0 = xml }
        let place = try isLocal ? run.folder.write(Array(xml.utf8), to: "doc.meta4") : url("/doc.meta4")
        let get = ["get", "--metalink", place, "-d", run.folder.path("out"), "--json"]
        let dry = try await run.tool(get + ["--dry-run"])
        #expect(dry.toolLines.count == 2 && dry.toolLines.last?.path == run.folder.path("out/extra/deep/other"))
        let outcome = try await run.tool(get)
        #expect(outcome.status == 0 && outcome.results.count == 2, "\(outcome.everything)")
        #expect(outcome.errors.contains("evil") && outcome.errors.contains("left out"), "\(outcome.everything)")
        for path in ["out/film", "out/extra/deep/other"] { #expect(try run.folder.read(path) == Self.film) }
        #expect(try !run.folder.contents().contains { $0.hasSuffix("evil") })
        // The same document means the same downloads.
        let requests = run.server.requests.count
        let again = try await run.tool(get)
        #expect(again.status == 0 && again.results.count == 2, "\(again.everything)")
        #expect(run.server.requests.count == requests + (isLocal ? 0 : 1))
        let moved = try await run.tool(
          get + ["--move-into", run.folder.path("moved"), "--ledger", run.folder.path("other.sqlite")])
        #expect(moved.status == 0, "\(moved.everything)")
        #expect(try run.folder.read("moved/extra/deep/other") == Self.film)
      }
    }

    @Test("the document that the server of a file names is read, without a log-in")
    func describedBy() async throws {
      let text = Watched("")
      try await DefectRun.with { request in
        let link = "</doc.meta4>; rel=describedby; type=\"application/metalink4+xml\""
        return switch request.path {
        case "/doc.meta4": .file(.text(text.value), mediaType: "application/metalink4+xml", for: request)
        default: .file(.bytes(Self.film), etag: "\"v1\"", for: request).setting(["Link": link])
        }
      } _: { run in
        text.update { $0 = document(file("named", ["\(run.server.url("/film"))"])) }
        let outcome = try await run.get(["/film"], ["--metalink", "--user", "me:secret"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(try run.folder.read("out/named") == Self.film)
        let asked = run.server.requests.first { $0.path == "/doc.meta4" }
        #expect(asked != nil && asked?.headers["Authorization"] == nil)
      }
    }

    @Test func sizesAndDigestsAreChecked() async throws {
      try await run { run, text in
        let digest = "<hash type=\"sha-256\">\(String(repeating: "0", count: 64))</hash>"
        let url = "\(run.server.url("/film"))"
        let wrongSize = file("small", [url]).replacing("50000", with: "49999")
        let xml = document(file("film", [url], digest) + wrongSize)
        text.update { $0 = xml }
        let outcome = try await run.get(["/doc.meta4"], ["--metalink", "--retry", "0"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        let codes = outcome.results.compactMap(\.error?.code)
        #expect(Set(codes) == ["digestMismatch", "sizeChanged"] || Set(codes) == ["digestMismatch", "lengthMismatch"])
      }
    }

    @Test("documents that cannot be used are failures", arguments: ["<html>", "", nil])
    func badDocuments(_ content: String?) async throws {
      try await run { run, text in
        text.update { $0 = content ?? "" }
        let outcome = try await run.get([content == nil ? "/gone" : "/doc.meta4"], ["--metalink", "--retry", "0"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(outcome.results.last?.error?.code == (content == nil ? "httpStatus" : "invalidMetalink"))
        let local = try await run.tool(["get", "--metalink", "no-such-file", "-d", run.folder.path("out"), "--json"])
        #expect(local.status == 1 && local.everything.contains("no-such-file"), "\(local.everything)")
      }
    }

    @Test(
      "the places that a document names get no credentials", arguments: ["curl", "urlsession"],
      ["user", "header", "netrc", "bearer"])
    func credentials(_ source: String, _ kind: String) async throws {
      // Only curl reads netrc files.
      if kind == "netrc", source != "curl" { return }
      try await run { run, text in
        let urls = ["/gone", "/film"].map { "\(run.server.url($0))" }
        let xml = document(file("film", urls))
        text.update { $0 = xml }
        let netrc = try run.folder.write(Array("machine 127.0.0.1 login u password s3cret\n".utf8), to: "netrc")
        let options =
          switch kind {
          case "user": ["--user", "u:s3cret"]
          case "header": ["-H", "Authorization: s3cret", "-H", "Cookie: s3cret", "-A", "agent"]
          case "netrc": ["--netrc-file", netrc]
          default: ["--bearer", "s3cret"]
          }
        let outcome = try await run.get(["/doc.meta4"], ["--metalink", "--source", source] + options)
        #expect(outcome.status == 0, "\(outcome.everything)")
        for request in run.server.requests {
          let isDocument = request.path == "/doc.meta4"
          #expect((request.headers["Authorization"] != nil) == isDocument, "\(request.path) \(request.headers)")
          #expect(!"\(request.headers)".contains("s3cret") || isDocument)
          if kind == "header" { #expect(request.headers["User-Agent"] == "agent") }
        }
        #expect(Set(run.server.requests.map(\.path)) == ["/doc.meta4", "/gone", "/film"])
        let ledger = try run.folder.read("out/.downpipe/ledger.sqlite")
        #expect(!String(decoding: ledger, as: UTF8.self).contains("s3cret"))
      }
    }
  }
}
