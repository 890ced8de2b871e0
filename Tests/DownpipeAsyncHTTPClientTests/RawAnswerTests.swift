#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
  import DownpipeTesting
  import Testing

  @Suite(.timeLimit(.minutes(2)))
  struct RawAnswerTests {
    @Test func keepsTheTable() async throws { try await RawAnswers(AsyncHTTPClientSource()).run() }
  }
#endif
