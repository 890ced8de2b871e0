import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

@Suite(.endsHangs)
struct WritingTests {
  static let samples: [(String, Data)] = [
    ("1", Samples.plain(version: 1)), ("2", Samples.plain(version: 2)), ("4", Samples.plain(version: 4)),
    ("odd keys", Samples.plain(extra: odd)), ("a reference", Samples.plain(extra: reference)), ("iOS 10", broken),
    ("archive", Samples.wrapped()),
  ]

  /// Unknown values of every kind, with keys that an encoding could damage.
  static let odd = """
    <key>A Key</key><array><true/><false/><real>-1.5</real><integer>-9223372036854775808</integer>
    <integer>18446744073709551615</integer><integer>0x10</integer><date>2016-05-12T02:41:27Z</date>
    <data>AAEC</data><string>Zoe\u{308} &amp; Zoë &lt;\u{1F600}&gt; &#13;&#x41;</string><string/><array/><dict/>
    <!-- nothing --><string><![CDATA[<&]]></string></array>
    <key>Zoe\u{308}</key><true/>
    """

  static let reference = "<key>A Reference</key>\(Samples.uid(70000))"

  static let broken = Samples.plain(
    request: Samples.request(.named, headers: Samples.systemHeaders), original: Samples.request(.named))

  @Test(
    "written data is read with equal values, in every format", arguments: samples,
    [AppleResumeData.Format.xml, .binary])
  func roundTrip(_ sample: (String, Data), _ format: AppleResumeData.Format) throws {
    let before = try AppleResumeData(sample.1)
    let after = try AppleResumeData(try before.data(format: format))
    #expect(after.format == format)
    #expect(after.isArchived == before.isArchived)
    #expect(after.facts == before.facts)
    #expect(after.opaqueKeys == before.opaqueKeys)
    #expect(after.needsRepair == before.needsRepair)
    // Values that were not changed stay the same.
    #expect(after.info == before.info)
    #expect(try after.data() == before.data(format: format))
  }

  @Test("unknown values are preserved exactly")
  func unknown() throws {
    let data = try AppleResumeData(Samples.plain(extra: Self.odd))
    for data in [data, try AppleResumeData(data.data(format: .binary)), try AppleResumeData(data.data(format: .xml))] {
      let values = try #require(data.info["A Key"]?.array)
      #expect(
        values.prefix(8) == [
          .boolean(true), .boolean(false), .real(-1.5), .integer(Int128(Int64.min)), .integer(Int128(UInt64.max)),
          .integer(16), .date(484_713_687), .data(Data([0, 1, 2])),
        ])
      // Compared by scalars: canonically equivalent strings are equal in Swift.
      let text = "Zoe\u{308} & Zoë <\u{1F600}> \rA"
      #expect(values[8].string.map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
      #expect(values[9...] == [.string(""), .array([]), .dictionary([:]), .string("<&")])
      #expect(data.info.contains { Array($0.key.utf8) == Array("Zoe\u{308}".utf8) && $0.value == .boolean(true) })
    }
  }

  @Test(
    "a plain list can be archived, and an archived one written plain",
    arguments: samples.filter { $0.0 != "a reference" && $0.0 != "archive" })
  func wrapping(_ sample: (String, Data)) throws {
    let plain = try AppleResumeData(sample.1)
    for format in [AppleResumeData.Format.xml, .binary] {
      let wrapped = try AppleResumeData(try plain.data(format: format, archived: true))
      #expect(wrapped.isArchived)
      #expect(wrapped.currentRequest?.form == .named)
      #expect(wrapped.originalRequest?.hasSystemRootName == true)
      let again = try AppleResumeData(try wrapped.data(archived: false))
      #expect(!again.isArchived)
      #expect(again.currentRequest?.form == .numbered)
      #expect(!again.needsRepair)
      for data in [wrapped, again] {
        for (key, value) in plain.info where ![Key.currentRequest, Key.originalRequest].contains(key) {
          #expect(data.info[key] == value, "\(key)")
        }
        #expect(data.currentRequest?.headers == plain.currentRequest?.headers)
        #expect(data.originalRequest?.headers == plain.originalRequest?.headers)
      }
    }
  }

  @Test("an object of an unknown class cannot be written to a plain list")
  func opaque() throws {
    let data = try AppleResumeData(Samples.wrapped())
    let error = #expect(throws: DownloadError.self) { try data.data(archived: false) }
    #expect(error?.message.contains("Odd") == true)
  }

  @Test("a reference is preserved in a plain list and cannot be added to an archive")
  func reference() throws {
    let data = try AppleResumeData(Samples.plain(extra: Self.reference))
    #expect(data.info["A Reference"] == .uid(70000))
    let error = #expect(throws: DownloadError.self) { try data.data(archived: true) }
    #expect(error?.message.contains("A Reference") == true)
  }

  @Test("an archive keeps unknown objects and does not grow when it is changed")
  func stableSize() throws {
    var data = try AppleResumeData(Samples.wrapped())
    var sizes: Set<Int> = []
    for step in 0..<200 {
      try data.update(bytesReceived: 100_000 + Int64(step))
      try data.refresh(url: try #require(URL(string: "https://cdn.example/film.mkv?step=\(100 + step)")))
      let bytes = try data.data(format: .binary)
      sizes.insert(bytes.count)
      data = try AppleResumeData(bytes)
    }
    #expect(sizes.count <= 2)
    #expect(data.bytesReceived == 100_199)
    #expect(data.opaqueKeys == ["Odd"])
    #expect(data.info["Unknown"] == .array([.integer(68188), .date(451_210_000.5)]))
    let (list, _) = try PropertyList.read(try data.data())
    #expect("\(list)".contains("FilmInfo"))
    #expect(list.dictionary?["$objects"]?.array?.contains { $0.dictionary?["secret"] != nil } == true)
  }

  @Test("values that XML does not support are written in binary only")
  func controlCharacters() throws {
    var data = try AppleResumeData(Samples.plain())
    data.info["Odd"] = .string("a\0b")
    let error = #expect(throws: DownloadError.self) { try data.data(format: .xml) }
    #expect(error?.code == .resumeData)
    #expect(try AppleResumeData(data.data(format: .binary)).info["Odd"] == .string("a\0b"))
    #expect(failure(Samples.plain(extra: "<key>A</key><string>a\u{1}</string>"))?.code == .resumeData)
    #expect(failure(Samples.plain(extra: "<key>A</key><string>&#1;</string>"))?.code == .resumeData)
    for date in [Double.nan, .infinity, 1e18, -1e18] {
      data.info["Odd"] = .date(date)
      #expect(throws: DownloadError.self) { try data.data(format: .xml) }
      _ = try AppleResumeData(data.data(format: .binary)).validator
    }
  }

  private typealias Key = AppleResumeData.Key
}
