#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct AsyncHTTPClientTargetTests {
    @Test(arguments: [
      ("/caf%E9.txt", "/caf%E9.txt"), ("/%c3%a9%2F%25", "/%c3%a9%2F%25"), ("/é%20x", "/%C3%A9%20x"),
      ("?q=a b%20c", "/?q=a%20b%20c"), ("/a?b=%FF&c", "/a?b=%FF&c"), ("", "/"), ("/a#part", "/a"),
    ])
    func theTargetIsSentAsWritten(_ text: String, _ target: String) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let url = try #require(HTTPURL.parse("http://127.0.0.1:\(server.port)\(text)"))
        _ = try await AsyncHTTPClientSource().fetch(url)
        #expect(server.requests.map(\.target) == [target])
        #expect(server.requests.first?.headers["Downpipe-Target"] == nil)
        #expect(server.requests.first?.headers["Host"] == "127.0.0.1:\(server.port)")
      }
    }

    @Test func aFieldCannotSetTheTarget() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        _ = try await AsyncHTTPClientSource().fetch(server.url("/mine"), headers: ["downpipe-target": "/other"])
        #expect(server.requests.map(\.target) == ["/mine"])
        #expect(server.requests.first?.headers["Downpipe-Target"] == nil)
      }
    }
  }
#endif
