import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

@Suite(.endsHangs)
struct HostileTests {
  static func xml(_ content: String) -> Data { Data(Samples.list(content).utf8) }

  static let base = """
    <key>NSURLSessionDownloadURL</key><string>https://example.org/</string>
    <key>NSURLSessionResumeBytesReceived</key><integer>7</integer>
    """

  /// A binary list of encoded objects, with references of four bytes.
  static func binary(_ objects: [[UInt8]], top: UInt64 = 0, count: UInt64? = nil) -> Data {
    var bytes = Array("bplist00".utf8)
    var table: [UInt8] = []
    for object in objects {
      table += be(UInt64(bytes.count), 4)
      bytes += object
    }
    let start = UInt64(bytes.count)
    return Data(
      bytes + table + [0, 0, 0, 0, 0, 0, 4, 4] + be(count ?? UInt64(objects.count), 8) + be(top, 8) + be(start, 8))
  }

  static func be(_ number: UInt64, _ size: Int) -> [UInt8] {
    (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
  }

  static func array(_ references: [Int]) -> [UInt8] {
    [0xA0 | UInt8(references.count)] + references.flatMap { be(UInt64($0), 4) }
  }

  static let lists: [(String, Data)] = [
    ("nothing", Data()),
    ("text", Data("film".utf8)),
    ("zeros", Data(count: 1000)),
    ("a partial file", Data(count: (1 << 20) + 1)),
    ("a large list", xml(base + "<key>A</key><data>\(String(repeating: "A", count: 1 << 20))</data>")),
    ("an array", Data("<plist><array/></plist>".utf8)),
    ("a string", Data("<plist><string>a</string></plist>".utf8)),
    ("an empty dictionary", xml("")),
    ("no end", Data("<plist><dict>".utf8)),
    ("a list in a list", Data("<plist><plist><dict/></plist></plist>".utf8)),
    ("two values", Data("<plist><dict/><dict/></plist>".utf8)),
    ("something after the end", xml(base) + Data("<a/>".utf8)),
    ("nothing in the list", Data("<plist></plist>".utf8)),
    ("a dictionary without a key", xml("<string>a</string>")),
    ("a key twice", xml(base + base)),
    ("a key without a value", xml(base + "<key>A</key>")),
    ("deep arrays", Data(("<plist>" + String(repeating: "<array>", count: 140_000)).utf8)),
    (
      "deep dictionaries",
      xml(
        base + "<key>A</key>" + String(repeating: "<dict><key>a</key>", count: 20_000) + "<true/>"
          + String(repeating: "</dict>", count: 20_000))
    ),
    ("many values", xml(base + "<key>A</key><array>\(String(repeating: "<true/>", count: 60_000))</array>")),
    (
      "entities",
      Data(
        """
        <?xml version="1.0"?><!DOCTYPE plist [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
        <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><plist><dict>\(base)<key>A</key><string>&c;</string></dict></plist>
        """.utf8)
    ),
    (
      "an external entity",
      Data(
        """
        <!DOCTYPE plist [<!ENTITY a SYSTEM "file:///etc/passwd">]>
        <plist><dict>\(base)<key>A</key><string>&a;</string></dict></plist>
        """.utf8)
    ),
    ("an entity", xml(base + "<key>A</key><string>&nbsp;</string>")),
    ("a surrogate", xml(base + "<key>A</key><string>&#xD800;</string>")),
    ("a reference without an end", xml(base + "<key>A</key><string>&#65 and so on</string>")),
    ("a signed reference", xml(base + "<key>A</key><string>&#-5;</string>")),
    ("invalid UTF-8", Data("<plist><dict><key>".utf8) + Data([0xFF, 0xC0]) + Data("</key><true/>".utf8)),
    ("an unknown element", xml(base + "<key>A</key><set/>")),
    ("a tag in a string", xml(base + "<key>A</key><string><true/></string>")),
    ("a malformed integer", xml(base + "<key>A</key><integer>--5</integer>")),
    ("a huge integer", xml(base + "<key>A</key><integer>99999999999999999999999999</integer>")),
    ("an empty integer", xml(base + "<key>A</key><integer/>")),
    ("a malformed real", xml(base + "<key>A</key><real>a</real>")),
    ("a malformed date", xml(base + "<key>A</key><date>2015-13-45T99:99:99Z</date>")),
    ("malformed data", xml(base + "<key>A</key><data>A=B</data>")),
    ("UTF-16", Data([0xFF, 0xFE]) + Data(Samples.list(base).utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })),

    ("a bare header", Data("bplist00".utf8)),
    ("another version of binary", Data("bplist16".utf8) + binary([[0x09]]).dropFirst(8)),
    ("a list that contains itself", binary([array([0])])),
    ("two lists that contain each other", binary([array([1]), array([0])])),
    ("a dictionary that contains itself", binary([[0xD1] + be(1, 4) + be(0, 4), [0x51, 0x61]])),
    ("deep binary", binary((0..<50_000).map { array([$0 + 1]) } + [[0x51, 0x61]])),
    ("billion laughs", binary((0..<20).map { array(Array(repeating: $0 + 1, count: 10)) } + [[0x51, 0x61]])),
    (
      "billion laughs with text",
      binary(
        (0..<4).map { array(Array(repeating: $0 + 1, count: 10)) }
          + [[0x5F, 0x12] + be(600_000, 4) + [UInt8](repeating: 0x61, count: 600_000)])
    ),
    ("a reference out of range", binary([array([7])])),
    ("a root out of range", binary([[0x09]], top: 1)),
    ("a huge count of objects", binary([[0x09]], count: 1 << 62)),
    ("a negative count of objects", binary([[0x09]], count: UInt64.max)),
    ("a huge array", binary([[0xAF, 0x13] + be(1 << 60, 8)])),
    ("a huge dictionary", binary([[0xDF, 0x13] + be(1 << 62, 8)])),
    ("huge data", binary([[0x4F, 0x13] + be(UInt64(Int64.max), 8)])),
    ("a huge string", binary([[0x6F, 0x12] + be(0xFFFF_FFFF, 4)])),
    ("a negative length", binary([[0x5F, 0x13] + be(UInt64.max, 8)])),
    ("a length that is a string", binary([[0x4F, 0x51, 0x61]])),
    ("a length that is cut off", binary([[0x5F]])),
    ("text beyond the objects", binary([[0x5E, 0x61]])),
    ("text that is not ASCII", binary([[0x51, 0xFF]])),
    ("half a surrogate pair", binary([[0x61, 0xD8, 0x00]])),
    ("a huge integer in binary", binary([[0x14] + be(1, 8) + be(0, 8)])),
    ("an integer of 32 bytes", binary([[0x15] + [UInt8](repeating: 0, count: 32)])),
    ("a huge reference", binary([[0x87] + be(1 << 40, 8)])),
    ("a key that is a number", binary([[0xD1] + be(1, 4) + be(1, 4), [0x10, 0x01]])),
    ("a set", binary([[0xC0]])),
    ("null", binary([[0x00]])),
    ("a binary list that is not a dictionary", binary([[0x09]])),

    ("an archive of nothing", archive([])),
    ("an archive of null", archive(["<string>$null</string>"])),
    ("an archive of a number", archive(["<string>$null</string>", "<integer>7</integer>"])),
    ("an archive of a request", Data(Samples.request(.named).utf8)),
    ("another archiver", xml("<key>$archiver</key><string>NSArchiver</string>")),
    ("an archive without objects", xml("<key>$archiver</key><string>NSKeyedArchiver</string>")),
    ("keys without values", dictionary(keys: Samples.uid(3), values: "", "<string>a</string>")),
    ("a key that is null", dictionary(keys: Samples.uid(0), values: Samples.uid(3), "<string>a</string>")),
    (
      "a value out of range", dictionary(keys: Samples.uid(3), values: Samples.uid(4_000_000_000), "<string>a</string>")
    ),
    (
      "an archived dictionary that contains itself",
      dictionary(keys: Samples.uid(3), values: Samples.uid(1), "<string>a</string>")
    ),
    (
      "an archived dictionary that is its own key",
      dictionary(keys: Samples.uid(1), values: Samples.uid(3), "<string>a</string>")
    ),
    (
      "a string that contains itself",
      dictionary(
        keys: Samples.uid(3), values: Samples.uid(3),
        "<dict><key>$class</key>\(Samples.uid(4))<key>NS.string</key>\(Samples.uid(3))</dict>",
        Samples.classText(["NSString", "NSObject"]))
    ),
    (
      "an archived array that contains itself",
      dictionary(
        keys: Samples.uid(3), values: Samples.uid(4), "<string>a</string>",
        "<dict><key>$class</key>\(Samples.uid(5))<key>NS.objects</key><array>\(Samples.uid(4))</array></dict>",
        Samples.classText(["NSArray", "NSObject"]))
    ),
    (
      "a URL relative to itself",
      dictionary(
        keys: Samples.uid(3), values: Samples.uid(4), "<string>a</string>",
        "<dict><key>$class</key>\(Samples.uid(5))<key>NS.base</key>\(Samples.uid(4))<key>NS.relative</key>\(Samples.uid(3))</dict>",
        Samples.classText(["NSURL", "NSObject"]))
    ),
    (
      "an object that is its own class",
      archive(["<string>$null</string>", "<dict><key>$class</key>\(Samples.uid(1))</dict>"])
    ),
    ("billion laughs in an archive", laughingArchive),
  ]

  static func archive(_ objects: [String]) -> Data { Data(Samples.archive(objects).utf8) }

  /// An archived dictionary. The given objects have the indices from 3.
  static func dictionary(keys: String, values: String, _ objects: String...) -> Data {
    archive(
      [
        "<string>$null</string>",
        "<dict><key>$class</key>\(Samples.uid(2))<key>NS.keys</key><array>\(keys)</array>"
          + "<key>NS.objects</key><array>\(values)</array></dict>",
        Samples.classText(["NSDictionary", "NSObject"]),
      ] + objects)
  }

  static var laughingArchive: Data {
    let levels = (0..<20).map { level in
      "<dict><key>$class</key>\(Samples.uid(4))<key>NS.objects</key><array>"
        + String(repeating: Samples.uid(level + 6), count: 10) + "</array></dict>"
    }
    return archive(
      [
        "<string>$null</string>",
        "<dict><key>$class</key>\(Samples.uid(2))<key>NS.keys</key><array>\(Samples.uid(3))</array>"
          + "<key>NS.objects</key><array>\(Samples.uid(5))</array></dict>",
        Samples.classText(["NSDictionary", "NSObject"]), "<string>a</string>",
        Samples.classText(["NSArray", "NSObject"]),
      ] + levels + ["<string>a</string>"])
  }

  @Test("a damaged or hostile list is refused with a message", arguments: lists)
  func damagedLists(_ sample: (String, Data)) {
    let error = failure(sample.1)
    #expect(error?.code == .resumeData)
    #expect(error?.message.hasPrefix("the resume data cannot be used: ") == true)
    #expect((error?.message.utf8.count ?? 0) < 400)
  }

  @Test("valid lists with similar content are read")
  func control() {
    #expect(failure(Self.xml(Self.base)) == nil)
    #expect(
      failure(Self.xml(Self.base + "<key>A</key><array>\(String(repeating: "<true/>", count: 40_000))</array>")) == nil)
    let deep = 60
    let nested = String(repeating: "<array>", count: deep) + String(repeating: "</array>", count: deep)
    #expect(failure(Self.xml(Self.base + "<key>A</key>" + nested)) == nil)
  }
}
