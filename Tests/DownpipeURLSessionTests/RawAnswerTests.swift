import DownpipeTesting
import DownpipeURLSession
import Foundation
import Testing

extension URLSessionTests {
  @Suite(.timeLimit(.minutes(2)))
  struct RawAnswerTests {
    @Test func probe() async throws {
      let rule = ProcessInfo.processInfo.environment["RULE"] ?? ""
      try await RawAnswers(
        URLSessionSource(.ephemeral),
        excluding: RawAnswers.rules.filter { $0 != rule }.map { .init($0, because: "probe") }
      ).run()
    }
  }
}
