#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import Foundation
  import Testing

  struct HTTPSourceTests {
    @Test func acceptsHTTPOnly() throws {
      let source = HTTPSource()
      let accepted = try ["http://a/", "HTTPS://a/", "ftp://a/", "file:///a", "a/b"].filter {
        source.accepts(try #require(URL(string: $0)))
      }
      #expect(accepted == ["http://a/", "HTTPS://a/"])
    }
  }
#endif
