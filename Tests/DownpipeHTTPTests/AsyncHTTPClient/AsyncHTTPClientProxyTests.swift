#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import Testing

  struct AsyncHTTPClientProxyTests {
    /// async-http-client has one kind of SOCKS, whose proxies look names up.
    @Test func socks5hIsSocks5() throws {
      #expect(try AsyncHTTPClientSource.Proxy(url: "socks5h://[::1]:9050").description == "socks5://[::1]:9050")
    }

    /// libcurl has authentication for SOCKS.
    @Test func aSOCKSProxyWithAUserNameIsRefused() {
      #expect(throws: DownloadError.self) { try AsyncHTTPClientSource.Proxy(url: "socks5://me:secret@proxy:1") }
    }
  }
#endif
