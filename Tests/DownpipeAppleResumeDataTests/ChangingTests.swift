import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

@Suite(.endsHangs)
struct ChangingTests {
  let fresh = URL(string: "https://cdn.example/b/film.mkv?sig=xyz")

  func again(_ data: AppleResumeData) throws -> AppleResumeData { try AppleResumeData(data.data()) }

  @Test("changing the count updates the range in the current request", arguments: [false, true])
  func count(_ isRanged: Bool) throws {
    let current = Samples.request(
      .numbered, headers: isRanged ? [("range", "bytes=68188-"), ("A", "b")] : [("A", "b")])
    var data = try AppleResumeData(Samples.plain(request: current))
    try data.update(bytesReceived: 70_000)
    data = try again(data)
    #expect(data.bytesReceived == 70_000)
    #expect(data.currentRequest?.headers["Range"] == (isRanged ? "bytes=70000-" : nil))
    #expect(data.currentRequest?.headers["A"] == "b")
    #expect(data.originalRequest?.headers.isEmpty == true)
    #expect(throws: DownloadError.self) { try data.update(bytesReceived: -1) }
    #expect(data.bytesReceived == 70_000)
    try data.update(bytesReceived: 0)
    #expect(try again(data).currentRequest?.headers["Range"] == nil)
  }

  @Test("a range requested by the app is not changed")
  func ownRange() throws {
    let ranged = Samples.request(.numbered, headers: [("Range", "bytes=100-999")])
    var data = try AppleResumeData(
      Samples.plain(bytes: "50", request: ranged, original: ranged, extra: BridgeTests.range("100-999")))
    try data.update(bytesReceived: 60)
    try data.refresh(url: try #require(fresh), headers: ["X-Client": "films"])
    data = try again(data)
    #expect(data.byteRange == "100-999")
    #expect(data.currentRequest?.headers["Range"] == "bytes=100-999")
    #expect(data.originalRequest?.headers["Range"] == "bytes=100-999")
    #expect(throws: DownloadError.self) { try data.checkpoint() }
  }

  @Test("a new link replaces the old one in all values", arguments: [Samples.plain(), Samples.wrapped()])
  func link(_ sample: Data) throws {
    let fresh = try #require(fresh)
    var data = try AppleResumeData(sample)
    try data.refresh(url: fresh, headers: ["X-Client": "films", "Range": "bytes=5-"])
    data = try again(data)
    #expect(data.url == fresh)
    #expect(data.currentRequest?.url == fresh)
    #expect(data.originalRequest?.url == fresh)
    #expect(data.currentRequest?.headers == ["X-Client": "films", "Range": "bytes=68188-"])
    #expect(data.originalRequest?.headers == ["X-Client": "films"])
    #expect(try data.checkpoint().bytesReceived == 68188)
    #expect(data.validator.entityTag == EntityTag("5534b35d-7c7be1"))
    #expect(try data.request().headers == ["X-Client": "films"])
    // The archives contain neither the old link nor the copy of the old header fields.
    for request in [data.currentRequest, data.originalRequest] {
      let text = String(decoding: try #require(try request?.data()), as: UTF8.self)
      #expect(!text.contains("token="))
      #expect(!text.contains("__hhaa__"))
    }
  }

  @Test("a new link keeps the header fields, and on another origin only those that say nothing about the user")
  func credentials() throws {
    let headers = [
      ("Accept", "a"), ("Authorization", "Bearer a"), ("Cookie", "a=b"), ("Host", "example.org"), ("X-Client", "films"),
    ]
    let sample = Samples.plain(
      request: Samples.request(.numbered, headers: headers), original: Samples.request(.numbered, headers: headers))
    var elsewhere = try AppleResumeData(sample)
    try elsewhere.refresh(url: try #require(fresh))
    #expect(try again(elsewhere).originalRequest?.headers == ["Accept": "a"])
    #expect(try again(elsewhere).currentRequest?.headers == ["Accept": "a", "Range": "bytes=68188-"])
    var same = try AppleResumeData(sample)
    try same.refresh(url: try #require(URL(string: "https://example.org/films/other")))
    #expect(
      try again(same).originalRequest?.headers
        == ["Accept": "a", "Authorization": "Bearer a", "Cookie": "a=b", "X-Client": "films"])
    var plain = try AppleResumeData(sample)
    try plain.refresh(url: try #require(URL(string: "http://example.org/films/other")))
    #expect(try again(plain).originalRequest?.headers == ["Accept": "a"])
  }

  @Test("an invalid link or header field is refused and changes nothing")
  func refused() throws {
    var data = try AppleResumeData(Samples.plain())
    for text in ["file:///etc/passwd", "ftp://example.org/a", "https:/a", "film.mkv"] {
      let url = try #require(URL(string: text))
      let error = #expect(throws: DownloadError.self) { try data.refresh(url: url) }
      #expect(error?.code == .resumeData)
    }
    let fresh = try #require(fresh)
    for headers: HeaderFields in [["A b": "c"], ["A": "b\r\nC: d"], ["A": String(repeating: "a", count: 70_000)]] {
      let error = #expect(throws: DownloadError.self) { try data.refresh(url: fresh, headers: headers) }
      #expect(error?.code == .invalidRequest)
    }
    #expect(try data.data() == AppleResumeData(Samples.plain()).data())
  }

  @Test("resume data is made from values", arguments: [1, 2, 4], [false, true])
  func handmade(_ version: Int, _ isArchived: Bool) throws {
    let url = try #require(URL(string: Samples.url))
    let made = try AppleResumeData(
      url: url, bytesReceived: 1 << 33, entityTag: EntityTag("a"), lastModified: HTTPDate.date(from: Samples.date),
      localFile: version == 1 ? "/var/tmp/film.part" : "film.part", version: version,
      headers: ["X-Client": "films", "Accept": "a", "accept": "b"], format: .binary, isArchived: isArchived)
    let data = try again(made)
    #expect(data.format == .binary)
    #expect(data.isArchived == isArchived)
    #expect(!data.needsRepair)
    #expect(data.url == url)
    #expect(data.version == version)
    let checkpoint = try data.checkpoint()
    #expect(checkpoint.bytesReceived == 1 << 33)
    #expect(checkpoint.fileName == "film.part")
    #expect(checkpoint.validator.ifRange == "\"a\"")
    #expect(checkpoint.validator.lastModified == HTTPDate.date(from: Samples.date))
    #expect(data.info["NSURLSessionResumeServerDownloadDate"] == .string(Samples.date))
    #expect((data.info["NSURLSessionResumeInfoLocalPath"] != nil) == (version == 1))
    #expect(data.currentRequest?.headers["Range"] == "bytes=8589934592-")
    #expect(data.currentRequest?.form == (isArchived ? .named : .numbered))
    #expect(data.originalRequest?.headers == ["X-Client": "films", "Accept": "a, b"])
    #expect(try data.request().headers == ["X-Client": "films", "Accept": "a, b"])
    #expect(try data.data() == made.data())
  }

  @Test("invalid values are refused")
  func handmadeRefused() throws {
    let url = try #require(URL(string: Samples.url))
    #expect(throws: DownloadError.self) { try AppleResumeData(url: url, bytesReceived: -1, localFile: "a") }
    #expect(throws: DownloadError.self) { try AppleResumeData(url: url, bytesReceived: 1, localFile: "../a") }
    #expect(throws: DownloadError.self) { try AppleResumeData(url: url, bytesReceived: 1, localFile: "/a") }
    #expect(throws: DownloadError.self) { try AppleResumeData(url: url, bytesReceived: 1, localFile: "a", version: 1) }
    #expect(throws: DownloadError.self) { try AppleResumeData(url: url, bytesReceived: 1, localFile: "a", version: 9) }
  }

  @Test("the form of iOS 10.0 is repaired")
  func repair() throws {
    let broken = try AppleResumeData(WritingTests.broken)
    #expect(broken.needsRepair)
    let repaired = try again(broken.repaired())
    #expect(!repaired.needsRepair)
    // The exact output of an older system.
    #expect(repaired.currentRequest?.form == .numbered)
    let expected = try AppleResumeData(Samples.plain())
    for (mine, theirs) in [
      (repaired.currentRequest, expected.currentRequest), (repaired.originalRequest, expected.originalRequest),
    ] {
      #expect(try Self.described(mine) == Self.described(theirs))
    }
    #expect(try repaired.repaired().data() == repaired.data())
  }

  /// The archive with each reference replaced by its object.
  static func described(_ request: ArchivedRequest?) throws -> PropertyList {
    let list = try PropertyList.read(try #require(try request?.data())).0
    let objects = try #require(list.dictionary?["$objects"]?.array)
    func follow(_ value: PropertyList) -> PropertyList {
      switch value {
      case .uid(let uid): follow(objects[Int(uid)])
      case .array(let items): .array(items.map(follow))
      case .dictionary(let items): .dictionary(items.mapValues(follow))
      default: value
      }
    }
    return follow(.dictionary(["top": try #require(list.dictionary?["$top"])]))
  }

  @Test("a wrong root name, or one wrong request, needs repair")
  func partlyBroken() throws {
    let renamed = Samples.request(.numbered).replacing(
      "<key>root</key>", with: "<key>NSKeyedArchiveRootObjectKey</key>")
    for sample in [Samples.plain(request: renamed), Samples.plain(original: Samples.request(.named))] {
      let data = try AppleResumeData(sample)
      #expect(data.needsRepair)
      let repaired = try again(data.repaired())
      #expect(!repaired.needsRepair)
      #expect(
        try Self.described(repaired.originalRequest) == Self.described(AppleResumeData(Samples.plain()).originalRequest)
      )
    }
  }

  @Test("a keyed archive needs no repair")
  func archiveStays() throws {
    let data = try AppleResumeData(Samples.wrapped())
    #expect(!data.needsRepair)
    #expect(try data.repaired().data() == data.data())
  }
}
