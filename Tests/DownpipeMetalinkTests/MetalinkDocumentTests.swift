import DownpipeCore
import DownpipeMetalink
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct MetalinkDocumentTests {
  static let four = "urn:ietf:params:xml:ns:metalink"
  static let sha256 = String(repeating: "ab", count: 32)
  static let sha1 = String(repeating: "0c", count: 20)

  static func version4(_ body: String) -> String {
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"\(four)\">\(body)</metalink>"
  }

  static func version3(_ body: String, _ attributes: String = "") -> String {
    "<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\" \(attributes)><files>\(body)</files></metalink>"
  }

  func parse(_ text: String) throws -> MetalinkDocument { try MetalinkDocument(parsing: Array(text.utf8)) }

  func refusal(_ text: String) -> DownloadError? {
    do {
      _ = try parse(text)
      return nil
    } catch {
      return error as? DownloadError
    }
  }

  @Test("the example of RFC 5854 §1.1, with more parts")
  func versionFour() throws {
    let document = try parse(
      Self.version4(
        """
        <published>2009-05-15T12:23:23Z</published>
        <origin dynamic="true">http://example.org/meta4</origin>
        <file name="folder/example.ext">
          <size>14471447</size>
          <hash type="sha-256">\(Self.sha256)</hash><hash type="sha-1"> \(Self.sha1) </hash>
          <hash type="odd">00</hash><hash type="sha-1">\(Self.sha1)</hash>
          <pieces length="7235724" type="sha-1"><hash>\(Self.sha1)</hash><hash>\(Self.sha1)</hash></pieces>
          <url location="DE">https://none.example.com/a</url>
          <url location="de" priority="2">ftp://ftp.example.com/example.ext</url>
          <url location="fr" priority="1">http://example.com/example.ext?a=1&amp;b=2</url>
          <url priority="0">http://zero.example.com/a</url>
          <metaurl mediatype="torrent" priority="2">http://example.com/example.ext.torrent</metaurl>
        </file>
        """))
    #expect(document.version == .four && document.isDynamic && document.skipped.isEmpty)
    #expect(document.origin?.absoluteString == "http://example.org/meta4")
    let file = try #require(document.files.first)
    #expect(document.files.count == 1 && file.name == "folder/example.ext" && file.size == 14_471_447)
    #expect(file.digests.map(\.description) == ["sha-256=\(Self.sha256)", "sha-1=\(Self.sha1)"])
    #expect(file.pieces.map(\.length) == [7_235_724] && file.pieces.first?.digests.count == 2)
    #expect(file.pieces.first?.algorithm == .sha1 && file.unknownAlgorithms == ["odd"])
    #expect(
      file.mirrors.map(\.url.absoluteString) == [
        "http://example.com/example.ext?a=1&b=2", "ftp://ftp.example.com/example.ext", "https://none.example.com/a",
        "http://zero.example.com/a",
      ])
    #expect(file.mirrors.map(\.priority) == [1, 2, nil, nil])
    #expect(file.mirrors.map(\.location) == ["fr", "de", "de", nil])
    #expect(file.metaURLs.map(\.mediaType) == ["torrent"])
  }

  @Test func versionThree() throws {
    let document = try parse(
      Self.version3(
        """
        <file name="a.iso"><size>10</size>
          <verification><hash type="md5">\(String(repeating: "1f", count: 16))</hash>
            <pieces length="5" type="sha1"><hash piece="1">\(Self.sha1)</hash>
              <hash piece="0">\(String(repeating: "00", count: 20))</hash></pieces>
          </verification>
          <resources maxconnections="1">
            <url type="http" location="jp" preference="10">http://a.test/a.iso</url>
            <url type="http">http://b.test/a.iso</url><url preference="100">https://c.test/a.iso</url>
            <url type="bittorrent" preference="100">http://d.test/a.torrent</url>
          </resources></file>
        """, "type=\"dynamic\" origin=\"http://example.org/a.metalink\""))
    let file = try #require(document.files.first)
    #expect(document.version == .three && document.isDynamic)
    #expect(document.origin?.absoluteString == "http://example.org/a.metalink")
    #expect(file.digests.map(\.algorithm) == [.md5] && file.size == 10)
    #expect(file.pieces.first?.digests.map { $0.bytes[0] } == [0, 0x0C])
    #expect(file.mirrors.map { $0.url.host() ?? "" } == ["c.test", "a.test", "b.test"])
    #expect(file.mirrors.map(\.preference) == [100, 10, nil])
    #expect(file.metaURLs.map { $0.url.host() ?? "" } == ["d.test"])
  }

  @Test func prefixesAndOtherNamespaces() throws {
    let document = try parse(
      """
      <m:metalink xmlns:m="\(Self.four)" xmlns="urn:other"><m:file name="a"><url>http://wrong.test/</url>
      <m:url>http://right.test/</m:url><size>1</size></m:file></m:metalink>
      """)
    #expect(document.files.first?.mirrors.map { $0.url.host() ?? "" } == ["right.test"])
    #expect(document.files.first?.size == nil)
  }

  @Test("elements count only at their place")
  func places() throws {
    let document = try parse(
      Self.version4(
        """
        <publisher name="p"><url>http://wrong.test/</url></publisher><url>http://wrong.test/2</url>
        <file name="a"><url>http://right.test/</url><publisher><url>http://wrong.test/3</url><size>7</size></publisher>
        <verification><hash type="sha-1">\(Self.sha1)</hash></verification></file>
        """))
    let file = try #require(document.files.first)
    #expect(file.mirrors.count == 1 && file.size == nil && file.digests.isEmpty)
  }

  @Test(arguments: [
    "../a", "a/../../b", "/etc/passwd", "a//b", "", ".", "a/.", "..", "a\\b", "C:a", "c:/a", "a&#10;b", "~/../a",
    String(repeating: "a/", count: 16) + "a", String(repeating: "x", count: 256),
  ])
  func unsafeNames(_ name: String) throws {
    let document = try parse(Self.version4("<file name=\"\(name)\"><url>http://a.test/</url></file>"))
    #expect(document.files.isEmpty && document.skipped.map(\.reason) == ["its name is not a safe relative path"])
  }

  @Test func skippedFiles() throws {
    let url = "<url>http://a.test/</url>"
    let document = try parse(
      Self.version4(
        "<file>\(url)</file><file name=\"a\">\(url)</file><file name=\"a\">\(url)</file><file name=\"b\"/>"
          + "<file name=\"c\"><url>no url</url></file>"))
    #expect(document.files.map(\.name) == ["a"])
    #expect(document.skipped.map(\.name) == [nil, "a", "b", "c"])
    #expect(document.skipped.map(\.reason).last == "it has no URL")
  }

  private static let digits = "not a sha-256 in hexadecimal digits"

  @Test(
    "a file whose checks cannot be read is refused, and the others are not",
    arguments: [
      ("<hash>\(sha256)</hash>", "it has a hash without a type"),
      ("<hash type=\"\">\(sha256)</hash>", "it has a hash without a type"),
      ("<hash type=\"sha-256\">\(sha256)</hash><hash>\(sha1)</hash>", "it has a hash without a type"),
      ("<hash type=\"sha-256\">\(sha1)</hash>", "one of its hashes is \(digits)"),
      ("<hash type=\"sha-256\">\(sha256)0</hash>", "one of its hashes is \(digits)"),
      ("<hash type=\"sha-256\">\(sha256.dropLast())g</hash>", "one of its hashes is \(digits)"),
      ("<hash type=\"sha-256\"/>", "one of its hashes is \(digits)"),
      ("<hash type=\"odd\">00</hash><hash type=\"sha-256\">x</hash>", "one of its hashes is \(digits)"),
      (
        "<hash type=\"sha-1\">\(sha1)</hash><hash type=\"sha1\">\(String(sha1.reversed()))</hash>",
        "it has two different hashes of the type sha-1"
      ),
      ("<size>abc</size>", "its size is not a number of bytes"),
      ("<size>-1</size>", "its size is not a number of bytes"),
      ("<size>+1</size>", "its size is not a number of bytes"), ("<size/>", "its size is not a number of bytes"),
      ("<size>1</size><size>2</size>", "it has two sizes"),
    ])
  func malformedHashes(_ parts: String, _ reason: String) throws {
    let url = "<url>http://a.test/</url>"
    let four = try parse(Self.version4("<file name=\"a\">\(parts)\(url)</file><file name=\"b\">\(url)</file>"))
    // Version 3 has the sizes beside the hashes.
    let hashes = parts.hasPrefix("<size") ? parts : "<verification>\(parts)</verification>"
    let resources = "<resources>\(url)</resources>"
    let three = try parse(
      Self.version3("<file name=\"a\">\(hashes)\(resources)</file><file name=\"b\">\(resources)</file>"))
    for document in [four, three] {
      #expect(document.files.map(\.name) == ["b"])
      #expect(document.skipped.map(\.name) == ["a"] && document.skipped.map(\.reason) == [reason])
      #expect(document.skipped.first?.error.message.contains("“a”") == true)
    }
  }

  @Test(
    "a file with pieces that cannot be checked is refused",
    arguments: [
      ("length=\"0\" type=\"sha-1\"", "length", [sha1]), ("length=\"x\" type=\"sha-1\"", "length", [sha1]),
      ("length=\"-8\" type=\"sha-1\"", "length", [sha1]), ("type=\"sha-1\"", "length", [sha1]),
      ("length=\"8\"", "without a type", [sha1]), ("length=\"8\" type=\"sha-1\"", "hexadecimal", [sha1, "zz"]),
      ("length=\"8\" type=\"sha-256\"", "hexadecimal", [sha1]),
      ("length=\"8\" type=\"sha-1\"", "0 pieces, but 12 bytes have 2", []),
      ("length=\"8\" type=\"sha-1\"", "1 pieces, but 12 bytes have 2", [sha1]),
      ("length=\"8\" type=\"sha-1\"", "3 pieces, but 12 bytes have 2", [sha1, sha1, sha1]),
    ])
  func malformedPieces(_ attributes: String, _ reason: String, _ hashes: [String]) throws {
    // A digest of the whole file does not make up for it: the document contradicts itself.
    let whole = "<hash type=\"sha-256\">\(Self.sha256)</hash>"
    let four = hashes.map { "<hash>\($0)</hash>" }.joined()
    let three = hashes.enumerated().map { "<hash piece=\"\($0)\">\($1)</hash>" }.joined()
    let documents = [
      Self.version4(
        "<file name=\"a\"><size>12</size>\(whole)<pieces \(attributes)>\(four)</pieces><url>http://a.test/</url></file>"
      ),
      Self.version3(
        "<file name=\"a\"><size>12</size><verification>\(whole)<pieces \(attributes)>\(three)</pieces></verification>"
          + "<resources><url>http://a.test/</url></resources></file>"),
    ]
    for text in documents {
      let document = try parse(text)
      #expect(document.files.isEmpty && document.skipped.count == 1)
      #expect(document.skipped.first?.reason.contains(reason) == true, "\(document.skipped)")
    }
  }

  @Test("the pieces of version 3 are numbered from 0 on", arguments: ["1 2", "0 0", "0 2", "0 -", "0 x"])
  func numbers(_ numbers: String) throws {
    let hashes = numbers.split(separator: " ").map { number in
      number == "-" ? "<hash>\(Self.sha1)</hash>" : "<hash piece=\"\(number)\">\(Self.sha1)</hash>"
    }
    let document = try parse(
      Self.version3(
        "<file name=\"a\"><verification><pieces length=\"8\" type=\"sha1\">\(hashes.joined())</pieces></verification>"
          + "<resources><url>http://a.test/</url></resources></file>"))
    #expect(document.files.isEmpty && document.skipped.first?.reason.contains("pieces") == true)
  }

  @Test("unknown algorithms are skipped beside a known one, and named where there is none")
  func unknownAlgorithms() throws {
    func file(_ parts: String) throws -> MetalinkDocument.File {
      let document = try parse(Self.version4("<file name=\"a\">\(parts)<url>http://a.test/</url></file>"))
      return try #require(document.files.first)
    }
    let unknown = "<hash type=\"sha-224\">00</hash><hash type=\"sha-224\">01</hash>"
    let pieces = "<pieces length=\"8\" type=\"odd\"><hash>x</hash></pieces>"
    #expect(try file(unknown + pieces).unknownAlgorithms == ["sha-224", "odd"])
    #expect(try file(unknown + pieces).unverifiableReason?.contains("sha-224, odd") == true)
    let known = try file(unknown + "<hash type=\"md5\">\(String(repeating: "0", count: 32))</hash>")
    #expect(known.digests.map(\.algorithm) == [.md5] && known.unverifiableReason == nil)
    let provedByPieces = try file(unknown + "<pieces length=\"8\" type=\"sha-1\"><hash>\(Self.sha1)</hash></pieces>")
    #expect(provedByPieces.unverifiableReason == nil)
    #expect(try file("").unverifiableReason == nil)
    // More than the ledger keeps.
    let long = try file("<pieces length=\"99999999999\" type=\"sha-1\"><hash>\(Self.sha1)</hash></pieces>")
    #expect(long.unverifiableReason?.contains("sha-1 of pieces") == true)
  }

  @Test func anEmptyFileHasNoPieces() throws {
    for hashes in ["", "<hash>\(Self.sha1)</hash>"] {
      let document = try parse(
        Self.version4(
          "<file name=\"a\"><size>0</size><pieces length=\"8\" type=\"sha-1\">\(hashes)</pieces>"
            + "<url>http://a.test/</url></file>"))
      #expect(document.files.count == 1)
    }
  }

  @Test(arguments: [
    "", "x", "<metalink/>", "<metalink xmlns=\"urn:other\"/>", "<other xmlns=\"\(four)\"/>",
    version4("<file name=\"a\">"), version4("").dropLast(4).description, version4("") + "<x/>",
    "<!DOCTYPE metalink [<!ENTITY a \"b\">]>" + "<metalink xmlns=\"\(four)\">&a;</metalink>",
    "<!doctype metalink SYSTEM \"file:///etc/passwd\"><metalink xmlns=\"\(four)\"/>",
    version4("&undefined;"), version4("<!ENTITY a 'b'>"),
    "<?xml version=\"1.0\" encoding=\"UTF-7\"?><metalink xmlns=\"\(four)\"/>",
    "<?xml version='1.0' encoding = 'IBM037'?><metalink xmlns=\"\(four)\"/>",
  ])
  func refused(_ text: String) {
    #expect(refusal(text)?.code == .invalidMetalink)
  }

  @Test func otherEncodings() throws {
    let text = Self.version4("<file name=\"größe\"><url>http://a.test/</url></file>")
    #expect(try parse("\u{FEFF}" + text).files.map(\.name) == ["größe"])
    for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf32] {
      let bytes = Array(try #require(text.data(using: encoding)))
      #expect(throws: DownloadError.self) { try MetalinkDocument(parsing: bytes) }
    }
    let latin = text.replacing("UTF-8", with: "ISO-8859-1")
    let bytes = Array(try #require(latin.data(using: .isoLatin1)))
    #expect(try MetalinkDocument(parsing: bytes).files.map(\.name) == ["größe"])
  }

  @Test func limits() {
    let url = "<url>http://a.test/</url>"
    let deep = String(repeating: "<x>", count: 40) + String(repeating: "</x>", count: 40)
    let long = "<file name=\"a\"><size>" + String(repeating: "1", count: 70_000) + "</size></file>"
    let urls = "<file name=\"a\">" + String(repeating: url, count: MetalinkDocument.maximumURLs + 1) + "</file>"
    let files = String(repeating: "<file/>", count: MetalinkDocument.maximumFiles + 1)
    for body in [deep, long, urls, files] { #expect(refusal(Self.version4(body))?.code == .tooLarge) }
    let blanks = [UInt8](repeating: 0x20, count: MetalinkDocument.maximumBytes + 1)
    #expect(throws: DownloadError.self) { try MetalinkDocument(parsing: blanks) }
  }

  @Test("many pieces are read in linear time, and their number is limited")
  func manyPieces() throws {
    func text(_ count: Int) -> String {
      Self.version4(
        "<file name=\"a\"><pieces length=\"8\" type=\"crc32\">"
          + String(repeating: "<hash>00000001</hash>", count: count) + "</pieces><url>http://a.test/</url></file>")
    }
    #expect(try parse(text(50_000)).files.first?.pieces.first?.digests.count == 50_000)
    #expect(refusal(text(MetalinkDocument.maximumPieces + 1))?.code == .tooLarge)
  }

  @Test("damaged documents end with an error or files, and never with a crash")
  func damaged() {
    let sample = Array(
      Self.version4(
        "<file name=\"a/b\"><size>5</size><hash type=\"sha-1\">\(Self.sha1)</hash><pieces length=\"4\" type=\"sha-1\">"
          + "<hash>\(Self.sha1)</hash></pieces><url priority=\"1\">http://a.test/</url><![CDATA[x]]></file>"
      ).utf8)
    var generator = SeededGenerator(seed: 11)
    for _ in 0..<LongForm.count(300, long: 2000) {
      var bytes = sample
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      if Bool.random(using: &generator) {
        bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
      }
      if let document = try? MetalinkDocument(parsing: bytes) { #expect(document.files.count <= 1) }
    }
  }
}
