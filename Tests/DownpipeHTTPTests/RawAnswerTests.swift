#if LIBCURL
  import DownpipeHTTP
  import DownpipeTesting
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct RawAnswerTests {
    @Test("libcurl reads what real servers send, and refuses the rest")
    func keepsTheTable() async throws { try await RawAnswers(HTTPSource()).run() }
  }
#endif
