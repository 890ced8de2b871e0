import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct SafeFileNameTests {
  @Test(arguments: [
    ("film.mkv", "film.mkv"),
    ("../../etc/passwd", "passwd"),
    ("..\\..\\boot.ini", "boot.ini"),
    ("C:\\dev\\robots.txt", "robots.txt"),
    ("a/b/", "b"),
    (".bashrc", "bashrc"),
    ("...hidden", "hidden"),
    (".downpipe", "downpipe"),
    (" . .x. . ", "x"),
    ("name.", "name"),
    ("CON", "_CON"),
    ("con.txt", "_con.txt"),
    ("nul .tar.gz", "_nul .tar.gz"),
    ("lpt1", "_lpt1"),
    ("COM¹.log", "_COM¹.log"),
    ("COM10", "COM10"),
    ("console.txt", "console.txt"),
    ("a\u{0}b\nc\u{7F}\u{85}.txt", "abc.txt"),
    ("invoice\u{202E}fdp.exe", "invoicefdp.exe"),
    ("zero\u{200B}\u{FEFF}width", "zerowidth"),
    ("\u{2066}a\u{2069}", "a"),
    ("a\u{2028}b", "ab"),
    ("a\u{A0}b", "a b"), ("東京\u{3000}地図.pdf", "東京\u{3000}地図.pdf"), ("\u{3000}a\u{3000}", "a"),
    ("👨\u{200D}👩\u{200D}👧.png", "👨\u{200D}👩\u{200D}👧.png"),
    ("e\u{301}.txt", "e\u{301}.txt"),
    ("a\r\n/b", "b"),
    ("what: why? \"so\" <a|b>*.txt", "what- why_ 'so' _a-b__.txt"),
  ])
  func suggestion(_ suggested: String, _ expected: String) {
    let name = SafeFileName.make(from: suggested, url: nil)
    #expect(Array(name.unicodeScalars) == Array(expected.unicodeScalars), "\(name)")
  }

  @Test(arguments: [
    ("AC/DC", "AC-DC"), ("AC\\DC", "AC-DC"), ("What? \"Live\": 1*", "What_ 'Live'- 1_"), ("../x", "-x"),
    ("S01/E02 – Ünï.mp3", "S01-E02 – Ünï.mp3"), ("", "download"), ("...", "download"), ("con", "_con"),
  ])
  func title(_ title: String, _ expected: String) {
    #expect(SafeFileName.make(fromTitle: title) == expected)
  }

  @Test func longTitlesKeepTheirBeginning() {
    let name = SafeFileName.make(fromTitle: "Begin " + String(repeating: "/x", count: 100_000))
    #expect(name.hasPrefix("Begin -x-x") && name.utf8.count <= SafeFileName.maximumLength)
  }

  @Test(arguments: ["", ".", "..", "/", "\\", "...", " ", "\u{202E}", "../..", "\u{0}", "//./"])
  func nothingLeft(_ suggested: String) {
    #expect(SafeFileName.make(from: suggested, url: nil) == "download")
    #expect(SafeFileName.make(from: suggested, url: URL(string: "https://example.org/a/b.txt?c=d#e")) == "b.txt")
    #expect(SafeFileName.make(from: suggested, url: nil, fallback: "..") == "download")
    #expect(SafeFileName.make(from: suggested, url: nil, fallback: "x/y") == "y")
  }

  @Test(arguments: [
    ("https://example.org/a%20b.txt", "a b.txt"),
    ("https://example.org/a/%2e%2e%2Fb.txt", "b.txt"),
    ("https://example.org/x%2F..", "download"),
    ("https://example.org/%2E%2E", "download"),
    ("https://example.org/..%5C..%5Cevil.exe", "evil.exe"),
    ("https://example.org/%00%2Edownpipe", "downpipe"),
    ("https://example.org/caf%C3%A9", "café"),
    ("https://example.org/caf%E9", "café"),
    ("https://example.org/100%25", "100%"),
    ("https://example.org/dir/", "dir"),
    ("https://example.org/", "download"),
    ("https://example.org", "download"),
    ("https://example.org/?file=a.txt", "download"),
    ("data:text/plain,hello", "download"),
  ])
  func url(_ text: String, _ expected: String) {
    #expect(SafeFileName.make(from: nil, url: URL(string: text)) == expected)
  }

  @Test(arguments: [
    (String(repeating: "a", count: 300) + ".tar.gz", ".tar.gz"),
    (String(repeating: "文", count: 300) + ".txt", ".txt"),
    (String(repeating: "a", count: 300), "a"),
    ("x." + String(repeating: "e", count: 300), "e"),
    ("con." + String(repeating: "a", count: 196), "a"),
    ("a" + String(repeating: "\u{301}", count: 2000) + ".png", ".png"),
    (String(repeating: "👨\u{200D}👩\u{200D}👧", count: 50) + ".png", ".png"),
    (String(repeating: "a", count: 190) + ". . . . . . . . b.txt", ".txt"),
  ])
  func length(_ suggested: String, _ ending: String) {
    let name = SafeFileName.make(from: suggested, url: nil)
    #expect(name.utf8.count <= SafeFileName.maximumLength)
    #expect(String(name.unicodeScalars.suffix(ending.unicodeScalars.count)) == ending, "\(name)")
    #expect(SafeFileName.make(from: name, url: nil) == name)
  }

  // The log of a test shows its arguments.
  @Test func longPaths() { length(String(repeating: "/a", count: 1_000_000) + ".txt", "a.txt") }

  @Test func isSafeWhateverComesIn() {
    var generator = SplitMix(state: 42)
    let alphabet = Array("./\\ \u{0}\n\u{202E}:aCON1.~文\u{301}%-".unicodeScalars)
    for _ in 0..<5000 {
      var text = String.UnicodeScalarView()
      for _ in 0..<Int.random(in: 0..<12, using: &generator) {
        text.append(alphabet.randomElement(using: &generator) ?? "a")
      }
      let name = SafeFileName.make(from: String(text), url: nil)
      #expect(!name.isEmpty && name.utf8.count <= 201)
      let scalars = Array(name.unicodeScalars)
      #expect(!scalars.contains { "/\\:?*<>|\"".unicodeScalars.contains($0) || $0.value < 0x20 || $0.value == 0x202E })
      #expect(scalars.first != "." && scalars.last != "." && scalars.first != " " && scalars.last != " ")
      #expect(SafeFileName.make(from: name, url: nil) == name, "a safe name changes: \(name)")
    }
  }
}

private struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
