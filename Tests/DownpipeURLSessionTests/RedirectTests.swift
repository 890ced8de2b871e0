import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

@testable import DownpipeURLSession

extension URLSessionTests {
  @Suite(.timeLimit(.minutes(1)))
  struct RedirectTests {
    @Test(arguments: [
      ("http://a.test/x/y?q", "z", "http://a.test/x/z"),
      ("http://a.test/x/y", "/z", "http://a.test/z"),
      ("http://a.test/x/y", "?r", "http://a.test/x/y?r"),
      ("http://a.test/x/y", "../z", "http://a.test/z"),
      ("http://a.test/x", "//b.test/y", "http://b.test/y"),
      ("http://a.test/x", "https://b.test/y", "https://b.test/y"),
      ("http://a.test/x", " https://b.test/y ", "https://b.test/y"),
      ("https://a.test/x", "https://a.test/a b", "https://a.test/a%20b"),
    ])
    func target(_ from: String, _ location: String, _ expected: String) throws {
      var redirects = Redirects(try #require(URL(string: from)), [], maximum: 1)
      #expect(try redirects.follow(status: 302, location: location))
      #expect(redirects.url.absoluteString == expected)
    }

    @Test(arguments: [
      ("https://a.test/", "http://a.test/", DownloadError.Code.tls),
      ("http://a.test/", "file:///etc/passwd", .unsupportedURL),
      ("http://a.test/", "ftp://a.test/x", .unsupportedURL), ("http://a.test/", "mailto:a@b", .unsupportedURL),
      ("http://a.test/", "http://", .unsupportedURL), ("http://a.test/x", "/x", .tooManyRedirects),
      ("http://a.test/x", "/x#f", .tooManyRedirects),
      ("http://a.test/", "/" + String(repeating: "a", count: 20_000), .invalidResponse),
    ])
    func refused(_ from: String, _ location: String, _ code: DownloadError.Code) throws {
      var redirects = Redirects(try #require(URL(string: from)), [], maximum: 10)
      let error = #expect(throws: DownloadError.self) { _ = try redirects.follow(status: 301, location: location) }
      #expect(error?.code == code, "\(String(describing: error))")
    }

    @Test(arguments: [
      (200, "/a"), (300, "/a"), (304, "/a"), (305, "/a"), (306, "/a"), (404, "/a"), (302, nil), (302, ""),
    ])
    func noRedirect(_ status: Int, _ location: String?) throws {
      var redirects = Redirects(try #require(URL(string: "http://a.test/")), [], maximum: 1)
      #expect(try redirects.follow(status: status, location: location) == false)
    }

    @Test(arguments: [
      ("https://a.test/y", true), ("https://A.test:443/y", true), ("https://a.test:444/", false),
      ("https://b.test/", false), ("https://sub.a.test/", false),
    ])
    func credentials(_ location: String, _ stay: Bool) throws {
      let fields: HeaderFields = ["Authorization": "x", "cookie": "y", "Host": "h", "Accept": "z", "Range": "bytes=1-"]
      var redirects = Redirects(try #require(URL(string: "https://a.test/x")), fields, maximum: 1)
      #expect(try redirects.follow(status: 307, location: location))
      for name in ["Authorization", "Cookie", "Host"] { #expect((redirects.fields[name] != nil) == stay) }
      #expect(redirects.fields["Accept"] == "z")
      #expect(redirects.fields["Range"] == "bytes=1-")
    }

    @Test func followed() async throws {
      try await withScriptedServer { request in
        switch request.path {
        case "/1": .redirect(to: "2?a=b", status: 301)
        case "/2": .redirect(to: "/dir/3", status: 307)
        case "/dir/3": ScriptedReply(302, ["Location": "4"], body: .text("go away"))
        case "/dir/4": .file(.text("hello"), for: request)
        default: .status(404)
        }
      } _: { server in
        try await withSource { source in
          let reply = try await source.open(
            SourceRequest(url: server.url("/1"), range: RequestedRange(from: 1), headers: ["Authorization": "secret"]))
          #expect(reply.finalURL == server.url("/dir/4"))
          #expect(try await reply.bytes() == Array("ello".utf8))
        }
        #expect(server.requests.map(\.target) == ["/1", "/2?a=b", "/dir/3", "/dir/4"])
        #expect(server.requests.allSatisfy { $0.headers["Range"] == "bytes=1-" })
        #expect(server.requests.allSatisfy { $0.headers["Authorization"] == "secret" })
      }
    }

    @Test func endless() async throws {
      try await withScriptedServer {
        .redirect(to: $0.path + "x")
      } _: { server in
        try await withSource { source in
          let error = await downloadError { _ = try await source.open(SourceRequest(url: server.url("/"))) }
          #expect(error?.code == .tooManyRedirects)
        }
        #expect(server.requests.count == 11)
      }
    }

    @Test func loop() async throws {
      try await withScriptedServer {
        .redirect(to: $0.path == "/a" ? "/b" : "/a")
      } _: { server in
        try await withSource { source in
          let error = await downloadError { _ = try await source.open(SourceRequest(url: server.url("/a"))) }
          #expect(error?.code == .tooManyRedirects)
        }
        #expect(server.requests.count == 2)
      }
    }

    @Test func anotherOriginGetsNoCredentials() async throws {
      try await withScriptedServer {
        .file(.text("hello"), for: $0)
      } _: { other in
        let target = other.url("/file").absoluteString
        try await withScriptedServer { _ in
          .redirect(to: target)
        } _: { server in
          try await withSource { source in
            let request = SourceRequest(url: server.url(), headers: ["Authorization": "secret", "X-A": "1"])
            let reply = try await source.open(request)
            #expect(try await reply.bytes() == Array("hello".utf8))
            #expect(reply.finalURL == other.url("/file"))
          }
          #expect(server.requests.first?.headers["Authorization"] == "secret")
        }
        #expect(other.requests.count == 1)
        #expect(other.requests.first?.headers["Authorization"] == nil)
        #expect(other.requests.first?.headers["X-A"] == "1")
      }
    }
  }
}
