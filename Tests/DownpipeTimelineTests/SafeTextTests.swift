import DownpipeCore
import DownpipeTimeline
import Testing

@Suite
struct SafeTextTests {
  @Test(arguments: [
    ("plain", "plain"), ("film – ü, 映画", "film – ü, 映画"),
    ("line\nbreak \u{0}\u{7f}", "line\\nbreak \\0\\u{7F}"), ("a\u{85}b\u{2028}c", "a\\u{0085}b\\u{2028}c"),
    ("see https://user:word@example.org/a?token=abc now", "see https://…@example.org/a?token=… now"),
  ])
  func textsAreOneLineWithoutSecrets(_ text: String, _ safe: String) {
    #expect(text.safeText == safe)
  }

  @Test func idsMayBeURLs() throws {
    let request = try DownloadRequest(
      "https://u:p@example.org/a?sig=1", id: DownloadID("https://u:p@example.org/a?sig=1"))
    #expect(request.id.safeText == "https://…@example.org/a?sig=…")
    #expect(request.safeURL == "https://…@example.org/a?sig=…")
  }
}
