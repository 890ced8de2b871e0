import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct ProgressBarTests {
  @Test(
    arguments: [
      (0, "▕    ▏"), (1.0 / 32, "▕▏   ▏"), (0.25, "▕█   ▏"), (0.5, "▕██  ▏"), (0.59375, "▕██▍ ▏"), (0.999, "▕███▉▏"),
      (1, "▕████▏"), (2, "▕████▏"), (-1, "▕    ▏"),
    ] as [(Double, String)])
  func fraction(_ fraction: Double, _ text: String) {
    #expect(ProgressBar(columns: 6).text(fraction: fraction) == text)
  }

  @Test(arguments: [(0, "[    ]"), (0.1, "[>   ]"), (0.5, "[==> ]"), (1, "[====]")] as [(Double, String)])
  func ascii(_ fraction: Double, _ text: String) {
    #expect(ProgressBar(columns: 6, isASCII: true).text(fraction: fraction) == text)
  }

  @Test("Without a known end a block wanders to and fro")
  func wandering() {
    let bar = ProgressBar(columns: 8)
    let seen = (0..<5).map { bar.text(wanderingAt: Double($0) / 8) }
    #expect(seen == ["▕▒▒▒▒  ▏", "▕ ▒▒▒▒ ▏", "▕  ▒▒▒▒▏", "▕ ▒▒▒▒ ▏", "▕▒▒▒▒  ▏"])
  }

  @Test("Too narrow for a bar", arguments: -3...2)
  func narrow(_ columns: Int) {
    #expect(ProgressBar(columns: columns).text(fraction: 0.5).isEmpty)
    #expect(ProgressBar(columns: columns).text(wanderingAt: 1).isEmpty)
  }
}
