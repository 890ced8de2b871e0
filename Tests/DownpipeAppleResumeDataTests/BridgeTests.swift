import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

@Suite(.endsHangs)
struct BridgeTests {
  @Test("the checkpoint has the count, the file name and the validator")
  func checkpoint() throws {
    let checkpoint = try AppleResumeData(Samples.plain()).checkpoint()
    #expect(checkpoint.bytesReceived == 68188)
    #expect(checkpoint.fileName == "CFNetworkDownload_JhfLFD.tmp")
    #expect(checkpoint.validator.entityTag == EntityTag("5534b35d-7c7be1"))
    #expect(checkpoint.validator.lastModified == HTTPDate.date(from: Samples.date))
    #expect(checkpoint.validator.ifRange == "\"5534b35d-7c7be1\"")
  }

  @Test("a date alone is not a strong validator, and malformed values are ignored")
  func weakValidators() throws {
    func validator(_ tag: String?, _ date: String) throws -> Validator {
      let tag = tag.map { "<key>NSURLSessionResumeEntityTag</key><string>\($0)</string>" } ?? ""
      let list = Samples.list(
        """
        <key>NSURLSessionDownloadURL</key><string>https://example.org/</string>
        <key>NSURLSessionResumeBytesReceived</key><integer>7</integer>\(tag)
        <key>NSURLSessionResumeServerDownloadDate</key>\(date)
        """)
      return try AppleResumeData(Data(list.utf8)).validator
    }
    let dated = try validator(nil, "<string>\(Samples.date)</string>")
    #expect(dated.lastModified == HTTPDate.date(from: Samples.date))
    #expect(!dated.isStrong)
    #expect(dated.ifRange == nil)
    #expect(
      try validator("W/\"a\"", "<string>yesterday</string>") == Validator(entityTag: EntityTag("a", isWeak: true)))
    #expect(try validator("a\r\nX: y", "<integer>7</integer>").isEmpty)
    #expect(
      try validator(nil, "<date>2015-04-20T08:05:49Z</date>").lastModified == HTTPDate.date(from: Samples.date))
  }

  @Test("the request has the fields of the app and no fields of the transfer")
  func request() throws {
    let asked = [
      ("X-Client", "films"), ("Authorization", "Bearer a"), ("range", "bytes=0-"), ("If-Range", "\"a\""),
      ("Host", "evil.example"), ("Content-Length", "7"), ("Accept-Encoding", "gzip"), ("Connection", "close"),
      ("If-None-Match", "\"a\""), ("Bad Name", "a"), ("X-Bad", "a\rb"), ("__hhaa__", "x"),
    ]
    let original = Samples.request(.numbered, headers: asked)
    let request = try AppleResumeData(Samples.plain(original: original)).request(id: "film")
    #expect(request.id == "film")
    #expect(request.url.absoluteString == Samples.url)
    #expect(request.headers == ["X-Client": "films", "Authorization": "Bearer a"])
  }

  @Test("the current request is used without an original one; both may be missing")
  func fallback() throws {
    let current = Samples.request(.named, headers: [("X-Client", "films")])
    let list = Samples.list(
      """
      <key>NSURLSessionResumeBytesReceived</key><integer>7</integer>
      <key>NSURLSessionResumeCurrentRequest</key><data>\(Samples.base64(current))</data>
      """)
    #expect(try AppleResumeData(Data(list.utf8)).request().headers == ["X-Client": "films"])
    let bare = Samples.list(
      """
      <key>NSURLSessionDownloadURL</key><string>http://example.org/a</string>
      <key>NSURLSessionResumeBytesReceived</key><integer>7</integer>
      """)
    let data = try AppleResumeData(Data(bare.utf8))
    #expect(try data.request().headers.isEmpty)
    #expect(try data.checkpoint().fileName == nil)
  }

  @Test("credentials are not sent to another host")
  func credentials() throws {
    let original = Samples.request(
      .numbered, url: "https://login.example/film",
      headers: [("X-Client", "films"), ("Accept", "a"), ("Cookie", "a=b")])
    let request = try AppleResumeData(Samples.plain(original: original)).request()
    #expect(request.headers == ["Accept": "a"])
  }

  @Test("only GET can be downloaded")
  func method() throws {
    let original = Samples.request(.numbered, method: "POST", headers: [])
    let data = try AppleResumeData(Samples.plain(original: original))
    let error = #expect(throws: DownloadError.self) { try data.request() }
    #expect(error?.code == .invalidRequest)
    #expect(error?.message.contains("POST") == true)
  }

  static func range(_ text: String) -> String {
    "<key>NSURLSessionResumeByteRange</key><string>\(text)</string>"
  }

  @Test("a partial that starts at the first byte can be resumed", arguments: ["0-", "bytes=0-", "0-99999", "0-0"])
  func wholeRanges(_ text: String) throws {
    #expect(try AppleResumeData(Samples.plain(extra: Self.range(text))).checkpoint().bytesReceived == 68188)
  }

  @Test(
    "a partial that may start elsewhere is refused",
    arguments: ["100-", "bytes=100-199", "-500", "", "bytes", "0-5,7-9", "9-5", "99999999999999999999-", "+1-", "1 -"])
  func ranges(_ text: String) throws {
    var data = try AppleResumeData(Samples.plain(extra: Self.range(text)))
    #expect(data.byteRange == text)
    let error = #expect(throws: DownloadError.self) { try data.checkpoint() }
    #expect(error?.code == .resumeData)
    data.forgetByteRange()
    #expect(try data.checkpoint().bytesReceived == 68188)
    #expect(try AppleResumeData(data.data()).checkpoint().bytesReceived == 68188)
  }

  @Test("a range requested by the app is refused; one that the system sent is not")
  func requestRanges() throws {
    let ranged = Samples.request(.numbered, headers: [("Range", "bytes=100-")])
    let error = #expect(throws: DownloadError.self) {
      try AppleResumeData(Samples.plain(original: ranged)).checkpoint()
    }
    #expect(error?.message.contains("byte 100 ") == true)
    #expect(try AppleResumeData(Samples.plain(request: ranged)).checkpoint().bytesReceived == 68188)
    // With one request the two cannot be distinguished.
    let alone = Samples.list(
      """
      <key>NSURLSessionResumeBytesReceived</key><integer>100</integer>
      <key>NSURLSessionResumeCurrentRequest</key><data>\(Samples.base64(ranged))</data>
      """)
    var data = try AppleResumeData(Data(alone.utf8))
    #expect(throws: DownloadError.self) { try data.checkpoint() }
    data.forgetByteRange()
    #expect(try AppleResumeData(data.data()).checkpoint().bytesReceived == 100)
  }
}
