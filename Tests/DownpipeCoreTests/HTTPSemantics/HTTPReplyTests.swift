import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct HTTPReplyTests {
  private let url = URL(filePath: "/unused")

  private func reply(_ status: Int, _ headers: HeaderFields = []) throws -> SourceReply {
    try SourceReply(httpStatus: status, headers: headers, url: url, body: .empty)
  }

  static let coverages: [(Int, HeaderFields, Coverage)] = [
    (200, [], .whole),
    (203, [], .whole),
    (200, ["Content-Range": "bytes 5-9/10"], .whole),
    (206, ["Content-Range": "bytes 5-9/10"], .range(5..<10, total: .known(10))),
    (206, ["Content-Range": "bytes 5-9/*"], .range(5..<10, total: .unknown)),
    (206, ["Content-Type": "Multipart/ByteRanges; boundary=x"], .multipart),
    (206, [], .unreadable("206 without Content-Range")),
    (
      206, ["Content-Range": "bytes 9-5/10"],
      .unreadable("206 with the malformed Content-Range “bytes 9-5/10”")
    ),
    (
      206, ["Content-Range": "bytes */10"],
      .unreadable("206 with the malformed Content-Range “bytes */10”")
    ),
    (
      206, ["Content-Range": "bytes 5-9/10", "content-range": "bytes 6-9/10"],
      .unreadable("206 with several different Content-Ranges")
    ),
    (304, [], .none(.notModified)),
    (412, [], .none(.preconditionFailed)),
    (416, ["Content-Range": "bytes */10"], .none(.rangeNotSatisfiable(total: .known(10)))),
    (416, ["Content-Range": "bytes 0-1/10"], .none(.rangeNotSatisfiable(total: .unknown))),
    (416, [], .none(.rangeNotSatisfiable(total: .unknown))),
    (204, [], .none(.status(204))),
    (205, [], .none(.status(205))),
    (301, [], .none(.status(301))),
    (404, [], .none(.status(404))),
    (503, [], .none(.status(503))),
  ]

  @Test(arguments: coverages)
  func coverage(_ status: Int, _ headers: HeaderFields, _ expected: Coverage) throws {
    #expect(try reply(status, headers).coverage == expected)
  }

  @Test func everyField() throws {
    let reply = try reply(
      200,
      [
        "content-length": "19", "etag": "\"abc\"", "last-modified": "Sun, 06 Nov 1994 08:49:37 GMT",
        "date": "Sun, 06 Nov 1994 08:59:37 GMT", "content-type": " text/plain; charset=utf-8",
        "content-disposition": "attachment; filename=\"../a.txt\"", "accept-ranges": "bytes", "retry-after": "7",
        "repr-digest": "sha-256=:\(ReprDigestTests.hello):",
      ])
    #expect(reply.length == .known(19))
    #expect(reply.validator?.ifRange == "\"abc\"")
    #expect(reply.validator?.strongLastModified == Date(timeIntervalSince1970: 784_111_777))
    #expect(reply.mediaType == "text/plain; charset=utf-8")
    #expect(reply.suggestedName == "../a.txt")
    #expect(reply.acceptsRanges == true)
    #expect(reply.retryAfter == .seconds(7))
    #expect(reply.digests.map(\.hex) == [ReprDigestTests.helloHex])
    #expect(reply.finalURL == url)
    #expect(reply.contentCoding == nil)
  }

  @Test func nothingSaid() throws {
    let reply = try reply(200)
    #expect(reply.length == .unknown)
    #expect(reply.validator == nil)
    #expect(reply.mediaType == nil)
    #expect(reply.suggestedName == nil)
    #expect(reply.acceptsRanges == nil)
    #expect(reply.digests.isEmpty)
  }

  @Test(arguments: [
    ([], String?.none), (["identity"], nil), ([""], nil), (["GZIP"], "gzip"), (["x-gzip"], "gzip"),
    (["gzip, br"], "gzip, br"), (["gzip", "identity , x-compress"], "gzip, compress"),
  ])
  func coding(_ values: [String], _ expected: String?) throws {
    let headers = HeaderFields(values.map { HeaderField("Content-Encoding", $0) })
    #expect(try reply(200, headers).contentCoding == expected)
  }

  @Test("a digest is that of the coded bytes, and the content's own only if it is whole")
  func contentDigest() throws {
    let digest = HeaderField("Content-Digest", "sha-256=:\(ReprDigestTests.hello):")
    #expect(try reply(200, HeaderFields([digest])).digests.count == 1)
    #expect(try reply(200, HeaderFields([digest, HeaderField("Content-Encoding", "gzip")])).digests.count == 1)
    #expect(try reply(206, HeaderFields([digest, HeaderField("Content-Range", "bytes 0-1/2")])).digests.isEmpty)
    #expect(try reply(404, HeaderFields([digest])).digests.isEmpty)
  }

  @Test(arguments: [200, 206], ["-1", "5x", "99999999999999999999"])
  func lyingLength(_ status: Int, _ value: String) throws {
    let headers: HeaderFields = ["Content-Length": value, "Content-Range": "bytes 0-4/5"]
    let error = #expect(throws: DownloadError.self) { try reply(status, headers) }
    #expect(error?.code == .invalidResponse)
    // A reply without bytes is still interpreted.
    #expect(try reply(404, headers).coverage == .none(.status(404)))
  }

  @Test func chunkedOverridesTheLength() throws {
    #expect(try reply(200, ["Content-Length": "5", "Transfer-Encoding": "chunked"]).length == .unknown)
  }

  static let soundCodings: [[String]] = [
    ["chunked"], ["Chunked"], ["CHUNKED "], [" \tchunked\t"], ["identity"], ["Identity"],
    ["chunked", "chunked"], ["chunked, chunked"], ["identity, chunked"], ["identity", "chunked"],
    ["identity", "identity"],
  ]

  @Test(arguments: soundCodings)
  func soundTransferCodings(_ values: [String]) throws {
    let headers = HeaderFields(values.map { HeaderField("transfer-encoding", $0) })
    #expect(try reply(200, headers).coverage == .whole)
    #expect(try reply(200, headers).length == .unknown)
  }

  static let unsoundCodings: [[String]] = [
    ["chunked, another"], ["another, chunked"], ["foo"], ["gzip"], ["x-gzip"], ["deflate"], ["compress"],
    ["gzip, chunked"], ["chunked, gzip"], ["gzip", "chunked"], ["chunked", "gzip"],
    ["chunked, identity"], ["chunked", "identity"], ["gzip", "chunked", "chunked"], [""], [","],
    ["chunked;q=1"], ["chunked ; a=\"b\""], ["gzip;a=\",chunked\""], ["chunked;a=\", chunked"], ["chunked chunked"],
    ["\"chunked\""], ["chunkedd"], ["chun\u{e9}ked"], ["chunked\u{b}"], ["chunked,"], [", ,chunked"], ["", "chunked"],
    ["xchunked"], ["trailers"], ["0"],
  ]

  @Test(arguments: unsoundCodings)
  func unsoundTransferCodings(_ values: [String]) throws {
    let fields = values.map { HeaderField("Transfer-Encoding", $0) }
    for status in [200, 203, 206] {
      let headers = HeaderFields(fields + [HeaderField("Content-Range", "bytes 0-4/5")])
      let error = #expect(throws: DownloadError.self) { try reply(status, headers) }
      #expect(error?.code == .invalidResponse)
      #expect(error?.message.contains("Transfer-Encoding") ?? false)
    }
    // A reply whose content is not kept is still interpreted.
    #expect(try reply(503, HeaderFields(fields)).coverage == .none(.status(503)))
    #expect(try reply(304, HeaderFields(fields)).coverage == .none(.notModified))
  }

  @Test(arguments: [
    (["gzip"], ["gzip"], false), (["GZip, chunked"], ["gzip"], true), (["gzip", "chunked"], ["gzip"], true),
    (["deflate, gzip, chunked"], ["gzip", "deflate"], true), (["chunked"], ["gzip"], true),
    (["deflate, gzip, chunked"], ["gzip"], false), (["chunked, gzip"], ["gzip"], false),
    (["gzip, chunked, chunked"], ["gzip"], true), (["gzip, identity"], ["gzip"], false),
    (["gzip;q=1, chunked"], ["gzip"], false), ([""], ["gzip"], false),
  ])
  func decodedTransferCodings(_ values: [String], _ decoded: [String], _ isSound: Bool) throws {
    let headers = HeaderFields(values.map { HeaderField("Transfer-Encoding", $0) })
    let reply = try? SourceReply(
      httpStatus: 200, headers: headers, url: url, body: .empty, decodedTransferCodings: decoded)
    #expect((reply != nil) == isSound)
  }

  @Test func acceptRangesNone() throws {
    #expect(try reply(200, ["Accept-Ranges": "none"]).acceptsRanges == false)
    #expect(try reply(206, ["Content-Range": "bytes 0-1/2"]).acceptsRanges == true)
  }

  @Test func longMediaTypeIsCut() throws {
    #expect(try reply(200, ["Content-Type": String(repeating: "x", count: 5000)]).mediaType?.count == 255)
  }

  struct Corpus: Decodable {
    struct Case: Decodable {
      var headers: String
      var strong: Bool
    }
    var cases: [Case]
  }

  @Test(.enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpusOfStrongValidators() throws {
    let corpus = try Corpora.read("vectors/strong-validators.json", as: Corpus.self)
    #expect(!corpus.cases.isEmpty)
    for item in corpus.cases {
      let headers = HeaderFields(Corpora.rawFields(item.headers).map { HeaderField($0.name, $0.value) })
      #expect((try reply(200, headers).validator?.isStrong ?? false) == item.strong, "\(item.headers)")
    }
  }
}
