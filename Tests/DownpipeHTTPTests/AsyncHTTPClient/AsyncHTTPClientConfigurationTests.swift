#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import Testing

  struct AsyncHTTPClientConfigurationTests {
    @Test func theSummaryListsTheSettings() {
      #expect(AsyncHTTPClientSource().name == "AsyncHTTPClientSource")
      #expect(AsyncHTTPClientSource().summary.isEmpty)
      let source = AsyncHTTPClientSource {
        $0.proxy = .http(host: "proxy", port: 3128, credentials: .init(user: "me", password: "secret"))
        $0.httpVersion = .http1Only
      }
      #expect(source.summary == "HTTP/1.1 only, through http://proxy:3128")
    }
  }
#endif
