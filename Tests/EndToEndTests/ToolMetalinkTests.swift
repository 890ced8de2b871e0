import Downpipe
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
        #expect(dry.toolLines.count == 3 && dry.toolLines.last?.path == run.folder.path("out/extra/deep/other"))
        #expect(dry.status == 1 && dry.toolLines.first?.error?.message.contains("evil") == true)
        let outcome = try await run.tool(get)
        #expect(outcome.status == 1 && outcome.results.count == 3, "\(outcome.everything)")
        let leftOut = outcome.results.filter { $0.event == "failed" }
        #expect(leftOut.map(\.error?.code) == ["invalidMetalink"], "\(outcome.everything)")
        #expect(leftOut.first?.error?.message.contains("evil") == true, "\(outcome.everything)")
        for path in ["out/film", "out/extra/deep/other"] { #expect(try run.folder.read(path) == Self.film) }
        #expect(try !run.folder.contents().contains { $0.hasSuffix("evil") })
        // The same document means the same downloads.
        let requests = run.server.requests.count
        let again = try await run.tool(get)
        #expect(again.status == 1 && again.results.count == 3, "\(again.everything)")
        #expect(run.server.requests.count == requests + (isLocal ? 0 : 1))
        let moved = try await run.tool(
          get + ["--move-into", run.folder.path("moved"), "--ledger", run.folder.path("other.sqlite")])
        #expect(moved.status == 1, "\(moved.everything)")
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

    @Test(
      "a file that is left out is a failure with a line of its own, and the others are fetched",
      arguments: [true, false])
    func leftOut(isJSON: Bool) async throws {
      try await run { run, text in
        let url = "\(run.server.url("/film"))"
        let xml = document(
          "<file name=\"relative\"><url>film</url></file><file name=\"none\"></file>"
            + "<file name=\"other\"><url>rsync://a.test/f</url></file>"
            + file("film", [url]) + file("film", [url]) + file("typeless", [url], "<hash>00</hash>")
            + file("short", [url], "<hash type=\"sha-256\">00</hash>"))
        text.update { $0 = xml }
        let place = run.server.url("/doc.meta4")
        let outcome = try await run.tool(
          ["get", "--metalink", "\(place)", "-d", run.folder.path("out")] + (isJSON ? ["--json"] : []))
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(try run.folder.read("out/film") == Self.film)
        #expect(run.server.requests.count { $0.path == "/film" } == 1)
        let lines = (isJSON ? outcome.output : outcome.errors).split(separator: "\n").filter { $0.contains("left out") }
        #expect(lines.count == 6, "\(outcome.everything)")
        for name in ["relative", "none", "other", "film", "typeless", "short"] {
          #expect(lines.count { $0.contains("“\(name)”") } == 1, "\(outcome.everything)")
        }
        if isJSON { #expect(outcome.results.count { $0.error?.code == "invalidMetalink" } == 6) }
      }
    }

    @Test(
      "a document without a file that can be fetched is a failure",
      arguments: [
        "", "<file name=\"f\"><url>f</url></file>", "<file name=\"../f\"><url>http://127.0.0.1:9/f</url></file>",
      ])
    func nothingFetched(_ body: String) async throws {
      try await run { run, text in
        text.update { $0 = document(body) }
        for more in [[], ["--dry-run"]] {
          let outcome = try await run.get(["/doc.meta4"], ["--metalink"] + more)
          #expect(outcome.status == 1 && outcome.toolLines.count == 1, "\(outcome.everything)")
          #expect(outcome.toolLines.first?.error?.code == "invalidMetalink", "\(outcome.everything)")
        }
      }
    }

    @Test("a file with hashes of unknown algorithms only is fetched with a notice, and refused with --require-digest")
    func unknownAlgorithms() async throws {
      try await run { run, text in
        let url = "\(run.server.url("/film"))"
        let unknown = "<hash type=\"sha3-256\">00</hash>"
        let digest = try Self.digest
        let known = "<hash type=\"sha-256\">\(digest)</hash>"
        text.update { $0 = document(file("odd", [url], unknown) + file("both", [url], unknown + known)) }
        let outcome = try await run.get(["/doc.meta4"], ["--metalink"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let notices = outcome.toolLines.filter { $0.event == "notice" }
        #expect(notices.count == 1 && notices.first?.notice?.code == "unverified", "\(outcome.everything)")
        #expect(notices.first?.notice?.message.contains("“odd”") == true)
        for name in ["odd", "both"] { #expect(try run.folder.read("out/\(name)") == Self.film) }

        let strict = try await run.get(["/doc.meta4"], into: "strict", ["--metalink", "--require-digest"])
        #expect(
          strict.status == 1 && strict.results.compactMap(\.error?.code) == ["unverified"], "\(strict.everything)")
        #expect(try run.folder.read("strict/both") == Self.film)
        #expect(!FileManager.default.fileExists(atPath: run.folder.path("strict/odd")))
        let both = strict.results.first { $0.event == "finished" }
        #expect(both?.verified?.map(\.source) == ["request"] && both?.verified?.first?.digest == digest)
      }
    }

    private static var digest: String {
      get throws {
        var computation = try DigestComputation(.sha256)
        computation.update(film.span.bytes)
        return computation.finalize().hex
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
