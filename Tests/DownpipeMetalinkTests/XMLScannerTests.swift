import DownpipeCore
import DownpipeTesting
import DownpipeXML
import HangLimit
import Testing

@testable import DownpipeMetalink

@Suite(.endsHangs)
struct XMLScannerTests {
  private func events(_ text: String) throws -> [XMLScanner.Event] {
    var scanner = XMLScanner(Array(text.utf8))
    var events: [XMLScanner.Event] = []
    while let event = try scanner.next() { events.append(event) }
    return events
  }

  @Test func wellFormed() throws {
    #expect(
      try events("\u{FEFF}<?xml version='1.0'?><!-- <x> --><a b = 'x&quot;\n' c:d=\"'>&#x41;&#66;\">t&lt;<b/></a >\n")
        == [
          .start("a", ["b": "x\" ", "c:d": "'>AB"]), .text("t<"), .start("b", [:]), .end("b"), .end("a"), .text("\n"),
        ])
    #expect(try events("<a><![CDATA[<&]]]]></a>") == [.start("a", [:]), .text("<&]]"), .end("a")])
    #expect(try events("<é.1/>") == [.start("é.1", [:]), .end("é.1")])
  }

  @Test(arguments: [
    "<", "<a", "<a b>", "<a b=>", "<a b=c>", "<a b='>", "<a b='<'/>", "<a b=''b=''/>", "<a b='' b=''/>", "<1/>",
    "< a/>",
    "</a", "</>", "</a b>", "<a / >", "<!-- ", "<?x", "<![CDATA[x]]", "<!DOCTYPE a>", "<!x", "&", "&amp", "&nbsp;",
    "&#0;",
    "&#x;", "&#xD800;", "&#-5;", "&#+65;", "&#x110000;", "&aaaaaaaaaaaaaaaa;", "<xmlns:q=\"\"/>",
  ])
  func malformed(_ text: String) {
    #expect(throws: MalformedXML.self) { try events(text) }
  }

  @Test("any bytes end with an error or with the end")
  func noise() {
    let parts = [
      "<", ">", "</", "/>", "\"", "'", "=", "a", "b:c", " ", "&amp;", "&", ";", "<!--", "-->", "<![CDATA[", "]]>", "<?",
      "?>",
    ]
    var generator = SeededGenerator(seed: 5)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...12, using: &generator)
      let text = (0..<count).map { _ in parts.randomElement(using: &generator) ?? "" }.joined()
      if let events = try? events(text) { #expect(events.count <= 2 * count) }
    }
  }
}
