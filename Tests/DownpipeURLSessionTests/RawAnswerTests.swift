import DownpipeTesting
import DownpipeURLSession
import Testing

extension URLSessionTests {
  @Suite(.timeLimit(.minutes(2)))
  struct RawAnswerTests {
    private static let fatal = "Foundation on Linux ends the process"

    @Test func keepsTheTable() async throws {
      try await RawAnswers(
        URLSessionSource(.ephemeral),
        excluding: [
          .init("trailers", because: Self.fatal),
          .init("chunked-in-two-fields", because: Self.fatal),
          .init("unknown-in-second-field", because: Self.fatal),
        ]
      ).run()
    }
  }
}
