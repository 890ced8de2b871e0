import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct FormattingTests {
  @Test(
    arguments: [(0, "0.0 s"), (0.44, "0.4 s"), (9.9, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (61, "1:01")]
      as [(Double, String)])
  func seconds(_ seconds: Double, _ text: String) { #expect(Formatting.seconds(.seconds(seconds)) == text) }
}
