#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import Testing

  struct HTTPConfigurationTests {
    @Test func theSummaryListsTheSettings() {
      #expect(HTTPSource().name == "HTTPSource")
      #expect(HTTPSource().summary.isEmpty)
      let source = HTTPSource {
        $0.proxy = .proxy(
          .init(.http, host: "proxy", port: 3128, credentials: .init(user: "me", password: "secret")))
        $0.httpVersion = .http1Only
      }
      #expect(source.summary == "HTTP/1.1 only, through http://proxy:3128")
    }
  }
#endif
