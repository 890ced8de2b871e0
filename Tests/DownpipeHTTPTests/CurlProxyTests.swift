#if LIBCURL
  import DownpipeHTTP
  import Testing

  struct CurlProxyTests {
    /// Kinds of proxies that libcurl alone can use.
    @Test(arguments: [
      ("https://proxy", "https://proxy:443"), ("socks4a://me@proxy", "socks4a://proxy:1080"),
      ("socks5h://[::1]:9050", "socks5h://[::1]:9050"),
    ])
    func readsProxyURLs(_ text: String, _ description: String) throws {
      #expect(try HTTPSource.Proxy(text).description == description)
    }
  }
#endif
