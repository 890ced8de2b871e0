import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct DisplayTextTests {
  @Test(arguments: [
    ("", 0), ("film.mkv", 8), ("東京", 4), ("ｆｕｌｌ", 8), ("ﾊﾝｶｸ", 4), ("e\u{301}", 1), ("né", 2), ("한국", 4), ("👍", 2),
    ("👨‍👩‍👧", 2),
    ("🇩🇪", 2), ("❤️", 2), ("…", 1), ("▕█▏", 3), ("a\u{200B}b", 2), ("\u{7}", 0), ("Ω≈ç", 3),
  ])
  func width(_ text: String, _ columns: Int) { #expect(text.columns == columns) }

  @Test(arguments: [
    ("film.mkv", 12, "film.mkv    "), ("film.mkv", 8, "film.mkv"), ("a-very-long-name.mkv", 12, "a-very-l…mkv"),
    ("東京の夜景の写真.jpg", 12, "東京の夜…jpg"), ("東京の夜景", 6, "東京… "), ("abc", 1, "…"), ("abc", 0, ""),
  ])
  func fit(_ text: String, _ columns: Int, _ fitted: String) { #expect(text.fitted(to: columns) == fitted) }

  @Test("A fitted text has exactly the width, a truncated one at most", arguments: 0...24)
  func exact(_ columns: Int) {
    for text in ["film.mkv", "東京の夜景の写真.jpg", "👍👍👍👍👍👍👍👍", "e\u{301}e\u{301}e\u{301}", ""] {
      #expect(text.fitted(to: columns).columns == columns)
      #expect(text.truncated(to: columns).columns <= columns)
    }
  }

  @Test("Control characters and marks of direction are replaced")
  func harmless() {
    #expect("a\u{1B}[2Jb\nc\r\u{9B}d".harmless == "a�[2Jb�c��d")
    #expect("photo\u{202E}gpj.exe".harmless == "photo�gpj.exe")
    #expect("東京 é 👍".harmless == "東京 é 👍")
  }
}
