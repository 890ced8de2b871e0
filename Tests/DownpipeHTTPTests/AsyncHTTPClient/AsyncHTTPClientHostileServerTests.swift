#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct AsyncHTTPClientHostileServerTests {
    /// libcurl takes the field.
    @Test func aNameWithASpaceIsRefused() async throws {
      let answer = HostileAnswer(
        "space in a header's name", "HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 0\r\n\r\n", .invalidResponse)
      try await answer.endsWithAClearError(AsyncHTTPClientSource())
    }
  }
#endif
