import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct HTTPRequestFieldsTests {
  private func fields(
    _ headers: HeaderFields = [], range: RequestedRange? = nil, validator: Validator? = nil
  ) throws -> HeaderFields {
    try HTTPRequestFields.fields(
      for: SourceRequest(url: URL(filePath: "/unused"), range: range, validator: validator, headers: headers))
  }

  @Test func whatEveryRequestSends() throws {
    #expect(
      try fields().fields == [
        HeaderField("Accept-Encoding", "identity"), HeaderField("User-Agent", "downpipe"), HeaderField("Accept", "*/*"),
      ])
  }

  @Test func usersFields() throws {
    let sent = try fields([
      "user-agent": "mine", "ACCEPT": "text/html", "accept-encoding": "gzip", "Host": "a", "X-A": "1", "x-a": "2",
    ])
    #expect(sent.values("User-Agent") == ["mine"])
    #expect(sent.values("Accept") == ["text/html"])
    #expect(sent.values("Accept-Encoding") == ["identity"])
    #expect(sent.values("X-A") == ["1", "2"])
    #expect(sent["Host"] == "a")
  }

  @Test func rangeAndCondition() throws {
    let strong = Validator(entityTag: EntityTag("abc"))
    let weak = Validator(entityTag: EntityTag("abc", isWeak: true))
    let sent = try fields(range: RequestedRange(from: 5, to: 10), validator: strong)
    #expect(sent["Range"] == "bytes=5-9")
    #expect(sent["If-Range"] == "\"abc\"")
    #expect(try fields(range: RequestedRange(from: 5))["Range"] == "bytes=5-")
    #expect(try fields(range: RequestedRange(from: 5), validator: weak)["If-Range"] == nil)
    #expect(try fields(validator: strong)["If-Range"] == nil)
    let evil = Validator(entityTag: EntityTag("a\r\nX: y"))
    #expect(try fields(range: RequestedRange(from: 5), validator: evil)["If-Range"] == nil)
  }

  @Test("A condition is sent as the entity tag or else as the date, in place of the user's, and not with a range")
  func condition() throws {
    func sent(
      _ condition: Validator?, _ headers: HeaderFields = [], range: RequestedRange? = nil
    ) throws -> [String?] {
      let fields = try HTTPRequestFields.fields(
        for: SourceRequest(url: URL(filePath: "/unused"), range: range, condition: condition, headers: headers))
      return [fields["If-None-Match"], fields["If-Modified-Since"]]
    }
    let date = Date(timeIntervalSince1970: 784_111_777)
    let tag = EntityTag("abc")
    #expect(try sent(nil) == [nil, nil] && sent(Validator()) == [nil, nil])
    #expect(try sent(Validator(entityTag: tag)) == ["\"abc\"", nil])
    #expect(try sent(Validator(entityTag: EntityTag("abc", isWeak: true))) == ["W/\"abc\"", nil])
    #expect(try sent(Validator(entityTag: tag, lastModified: date)) == ["\"abc\"", nil])
    #expect(try sent(Validator(lastModified: date)) == [nil, "Sun, 06 Nov 1994 08:49:37 GMT"])
    let own: HeaderFields = ["If-None-Match": "\"mine\"", "if-modified-since": "Sun, 06 Nov 1994 08:00:00 GMT"]
    #expect(try sent(nil, own) == ["\"mine\"", "Sun, 06 Nov 1994 08:00:00 GMT"])
    #expect(try sent(Validator(entityTag: tag), own) == ["\"abc\"", nil])
    #expect(try sent(Validator(lastModified: date), own) == [nil, "Sun, 06 Nov 1994 08:49:37 GMT"])
    #expect(try sent(Validator(entityTag: tag), range: RequestedRange(from: 5)) == [nil, nil])
    // A tag that cannot be sent is no reason to fail.
    #expect(try sent(Validator(entityTag: EntityTag("a\r\nX: y"))) == [nil, nil])
  }

  @Test(
    "Fields of the connection are left out",
    arguments: [
      "transfer-encoding", "Connection", "TE", "Upgrade", "Keep-Alive", "Proxy-Connection", "Trailer", "HTTP2-Settings",
    ])
  func ofTheConnection(_ name: String) throws {
    let sent = try fields(HeaderFields([HeaderField(name, "close"), HeaderField("X-A", "1")]))
    #expect(sent[name] == nil && sent["X-A"] == "1")
  }

  @Test(arguments: [
    HeaderField("Content-Length", "5"), HeaderField("Range", "bytes=0-1"), HeaderField("If-Range", "\"a\""),
    HeaderField("Expect", "100-continue"), HeaderField("X", "a\r\nY: b"),
    HeaderField("X Y", "a"), HeaderField("", "a"), HeaderField("X:", "a"), HeaderField("X", "a\u{0}b"),
  ])
  func refused(_ field: HeaderField) {
    let error = #expect(throws: DownloadError.self) { try fields(HeaderFields([field])) }
    #expect(error?.code == .invalidRequest)
  }

  @Test(arguments: [
    RequestedRange(from: -1), RequestedRange(from: 5, to: 5), RequestedRange(from: 5, to: 4),
    RequestedRange(from: 0, to: .min),
  ])
  func emptyRange(_ range: RequestedRange) {
    let error = #expect(throws: DownloadError.self) { try fields(range: range) }
    #expect(error?.code == .invalidRequest)
  }
}
