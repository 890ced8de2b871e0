import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

@Suite(.endsHangs)
struct ReadingTests {
  @Test("every version is read, from XML and from binary", arguments: [1, 2, 4], [false, true])
  func versions(_ version: Int, _ isBinary: Bool) throws {
    let sample = Samples.plain(version: version)
    let data = try AppleResumeData(isBinary ? try Samples.binary(sample) : sample)
    #expect(data.version == version)
    #expect(data.format == (isBinary ? .binary : .xml))
    #expect(!data.isArchived)
    #expect(!data.needsRepair)
    #expect(data.url.absoluteString == Samples.url)
    #expect(data.bytesReceived == 68188)
    #expect(data.fileName == "CFNetworkDownload_JhfLFD.tmp")
    #expect(data.byteRange == nil)
    let current = try #require(data.currentRequest)
    #expect(current.url.absoluteString == Samples.url)
    #expect(current.method == "GET")
    #expect(current.headers.fields.map(\.name) == ["User-Agent", "Accept", "Accept-Language", "Accept-Encoding"])
    #expect(current.headers["accept-encoding"] == "gzip, deflate")
    let original = try #require(data.originalRequest)
    #expect(original.url.absoluteString == Samples.url)
    #expect(original.method == "GET")
    #expect(original.headers.isEmpty)
  }

  @Test("a keyed archive is read, with objects of all supported classes", arguments: [false, true])
  func archived(_ isBinary: Bool) throws {
    let sample = Samples.wrapped()
    let data = try AppleResumeData(isBinary ? try Samples.binary(sample) : sample)
    #expect(data.isArchived)
    #expect(data.version == 4)
    #expect(data.url.absoluteString == Samples.url)
    #expect(data.bytesReceived == 68188)
    #expect(data.fileName == "CFNetworkDownload_JhfLFD.tmp")
    #expect(data.validator.entityTag == EntityTag("5534b35d-7c7be1"))
    #expect(data.info["Unknown"] == .array([.integer(68188), .date(451_210_000.5)]))
    #expect(data.opaqueKeys == ["Odd"])
    #expect(data.currentRequest?.form == .named)
    // The repetition of all fields is not a field.
    #expect(data.currentRequest?.headers.fields.map(\.name) == Samples.systemHeaders.map(\.0))
    #expect(!data.needsRepair)
  }

  @Test("data of a browser, without a URL and an original request, is read")
  func withoutURL() throws {
    let list = Samples.list(
      """
      <key>NSURLSessionResumeInfoVersion</key><integer>1</integer>
      <key>NSURLSessionResumeBytesReceived</key><integer>7</integer>
      <key>NSURLSessionResumeInfoLocalPath</key><string>/var/Downloads/film.mkv.download/film.mkv</string>
      <key>NSURLSessionResumeCurrentRequest</key><data>\(Samples.base64(Samples.request(.named)))</data>
      """)
    let data = try AppleResumeData(Data(list.utf8))
    #expect(data.url.absoluteString == Samples.url)
    #expect(data.fileName == "film.mkv")
    #expect(try data.checkpoint().bytesReceived == 7)
  }

  @Test("a missing version is derived from the key of the file")
  func missingVersion() throws {
    func version(_ key: String, _ file: String) throws -> Int {
      let list = Samples.list(
        """
        <key>NSURLSessionDownloadURL</key><string>https://example.org/</string>
        <key>NSURLSessionResumeBytesReceived</key><integer>7</integer><key>\(key)</key><string>\(file)</string>
        """)
      return try AppleResumeData(Data(list.utf8)).version
    }
    #expect(try version("NSURLSessionResumeInfoLocalPath", "/tmp/a") == 1)
    #expect(try version("NSURLSessionResumeInfoTempFileName", "a") == 2)
  }

  @Test("requests are read in both forms and of both classes")
  func requests() throws {
    for form in [Samples.Form.numbered, .named] {
      for name in ["NSURLRequest", "NSMutableURLRequest"] {
        let text = Samples.request(form, method: "POST", headers: [("X-Answer", "42 & <more>")], name: name)
        for data in [Data(text.utf8), try Samples.binary(Data(text.utf8))] {
          let request = try ArchivedRequest(data)
          #expect(request.url.absoluteString == Samples.url)
          #expect(request.method == "POST")
          #expect(request.headers == [HeaderField("X-Answer", "42 & <more>")])
          #expect(request.form == (form == .named ? .named : .numbered))
        }
      }
    }
  }
}
