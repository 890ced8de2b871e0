import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct TerminalTests {
  @Test("A frame overwrites the last one without erasing it first")
  func redraw() {
    var terminal = Terminal(.standardError)
    let first = terminal.text(above: [], frame: ["one", "two"], columns: 80)
    #expect(first == "\u{1B}[?25l\rone\u{1B}[K\ntwo\u{1B}[K\n\u{1B}[J")
    let second = terminal.text(above: ["done"], frame: ["two"], columns: 80)
    #expect(second == "\r\u{1B}[2Adone\u{1B}[K\ntwo\u{1B}[K\n\u{1B}[J")
  }

  @Test("In a terminal that has become narrower, wrapped lines count")
  func resize() {
    var terminal = Terminal(.standardError)
    _ = terminal.text(above: [], frame: [String(repeating: "x", count: 70), "y"], columns: 80)
    #expect(terminal.text(above: [], frame: ["z"], columns: 30).hasPrefix("\r\u{1B}[4A"))
  }

  @Test(arguments: [("\u{1B}[31mred\u{1B}[0m", 3), ("\u{1B}[1m東\u{1B}[0m京", 4), ("plain", 5)])
  func width(_ line: String, _ columns: Int) { #expect(Terminal.width(line) == columns) }

  /// The first variable that is not empty decides.
  @Test(
    arguments: [
      ([:], true), (["LANG": "C"], true), (["LANG": "de_DE"], true), (["LANG": "en_US.UTF-8"], true),
      (["LANG": "de_DE.utf8@euro"], true), (["LANG": "de_DE.ISO-8859-1"], false), (["LANG": "ru_RU.KOI8-R@x"], false),
      (["LANG": "de_DE.ISO-8859-1", "LC_CTYPE": "C.UTF-8"], true),
      (["LANG": "C.UTF-8", "LC_CTYPE": "ja_JP.eucJP", "LC_ALL": ""], false),
      (["LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8", "LC_ALL": "de_DE.ISO-8859-15"], false),
    ] as [([String: String], Bool)])
  func charsets(_ environment: [String: String], _ canShowBars: Bool) {
    #expect(OutputChoice.canShowBars(environment) == canShowBars)
  }
}
