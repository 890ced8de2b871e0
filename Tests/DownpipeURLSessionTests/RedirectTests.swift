import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeURLSession

extension URLSessionTests {
  @Suite(.endsHangs)
  struct RedirectTests {
    @Test("A place that a server has named gets no credentials")
    func namedByAServer() async throws {
      try await withScriptedServer { request in
        request.path == "/away" ? .redirect(to: "/file") : ScriptedReply(200)
      } _: { server in
        try await withSource { source in
          let text = "\(server.url("/away"))".replacingOccurrences(of: "http://", with: "http://me:secret@")
          let reply = try await source.open(
            SourceRequest(
              url: try #require(URL(string: text)),
              headers: ["Cookie": "secret", "X-Key": "secret", "Accept": "video/*"],
              isNamedByServer: true))
          reply.body.discard()
        }
        #expect(server.requests.count == 2)
        for request in server.requests {
          #expect(["Authorization", "Cookie", "X-Key"].allSatisfy { request.headers[$0] == nil }, "\(request)")
          #expect(request.headers["Accept"] == "video/*")
        }
      }
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
          #expect(reply.redirects == ["/2?a=b", "/dir/3", "/dir/4"].map { server.url($0) })
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
        #expect(server.requests.count == 11)
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
            let request = SourceRequest(
              url: server.url(), headers: ["Authorization": "secret", "X-A": "1", "Accept": "text/plain"])
            let reply = try await source.open(request)
            #expect(try await reply.bytes() == Array("hello".utf8))
            #expect(reply.finalURL == other.url("/file"))
          }
          #expect(server.requests.first?.headers["Authorization"] == "secret")
        }
        #expect(other.requests.count == 1)
        #expect(other.requests.first?.headers["Authorization"] == nil)
        #expect(other.requests.first?.headers["X-A"] == nil)
        #expect(other.requests.first?.headers["Accept"] == "text/plain")
      }
    }
  }
}
