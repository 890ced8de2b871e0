import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeBackgroundURLSession

@Suite(.endsHangs)
struct FinishedAnswerTests {
  struct Row: CustomTestStringConvertible, Sendable {
    var asked: RequestedRange?
    var status: Int
    var headers: HeaderFields
    var size: Int64
    var coverage: Coverage?
    var code: DownloadError.Code?
    var testDescription: String { "\(String(describing: asked?.field)) \(status) \(headers.fields) \(size)" }
  }

  static func part(_ text: String) -> HeaderFields { ["Content-Range": "bytes \(text)", "ETag": "\"v\""] }

  static let rows: [Row] = [
    Row(status: 200, headers: ["Content-Length": "10"], size: 10, coverage: .whole),
    Row(status: 200, headers: [], size: 10, coverage: .whole),
    Row(status: 200, headers: ["Content-Length": "10"], size: 9, code: .lengthMismatch),
    Row(status: 200, headers: ["Content-Length": "10"], size: 11, code: .lengthMismatch),
    Row(asked: .init(from: 4), status: 200, headers: ["Content-Length": "10"], size: 10, coverage: .whole),
    // A requested range, and one that was not requested.
    Row(
      asked: .init(from: 4), status: 206, headers: part("4-9/10"), size: 6, coverage: .range(4..<10, total: .known(10))),
    Row(
      asked: .init(from: 4, to: 6), status: 206, headers: part("4-5/*"), size: 2,
      coverage: .range(4..<6, total: .unknown)),
    Row(status: 206, headers: part("4-9/10"), size: 6, coverage: .range(4..<10, total: .known(10))),
    Row(
      asked: .init(from: 4), status: 206, headers: part("0-9/10"), size: 10,
      coverage: .range(0..<10, total: .known(10))),
    // The system has resumed by itself and reports the last answer.
    Row(status: 206, headers: part("4-9/10"), size: 10, coverage: .whole),
    Row(status: 206, headers: part("4-7/10"), size: 8, coverage: .range(0..<8, total: .known(10))),
    Row(
      asked: .init(from: 2), status: 206, headers: part("4-9/10"), size: 8,
      coverage: .range(2..<10, total: .known(10))),
    Row(status: 206, headers: ["Content-Range": "bytes 4-9/10"], size: 10, code: .unproven),
    // Sizes that match neither.
    Row(status: 206, headers: part("4-9/10"), size: 7, code: .lengthMismatch),
    Row(asked: .init(from: 2), status: 206, headers: part("4-9/10"), size: 10, code: .lengthMismatch),
    Row(asked: .init(from: 4), status: 206, headers: part("4-9/10"), size: 5, code: .lengthMismatch),
    Row(asked: .init(from: 6), status: 206, headers: part("4-9/10"), size: 4, code: .lengthMismatch),
    Row(
      status: 206, headers: ["Content-Range": "bytes x"], size: 5,
      coverage: .unreadable("206 with the malformed Content-Range “bytes x”")),
    Row(status: 206, headers: ["Content-Type": "multipart/byteranges"], size: 5, coverage: .multipart),
    Row(status: 404, headers: ["Content-Length": "10"], size: 0, coverage: Coverage.none(.status(404))),
    Row(
      status: 416, headers: ["Content-Range": "bytes */10"], size: 0,
      coverage: Coverage.none(.rangeNotSatisfiable(total: .known(10)))),
    Row(status: 304, headers: [], size: 0, coverage: Coverage.none(.notModified)),
    Row(status: 200, headers: ["Transfer-Encoding": "gzip"], size: 5, code: .invalidResponse),
  ]

  @Test(arguments: rows) func theCoverageFollowsFromAnswerAndSize(_ row: Row) throws {
    let tag = try makeTag("a", "https://a/", row.asked)
    let answer = FinishedAnswer(status: row.status, headers: row.headers, url: "https://b/")
    do {
      let reply = try answer.reply(to: tag, size: row.size, body: .empty)
      #expect(reply.coverage == row.coverage)
      #expect(reply.finalURL?.absoluteString == "https://b/")
      switch reply.coverage {
      case .whole, .range: #expect(reply.length == .known(row.size))
      default: break
      }
    } catch {
      #expect(error.code == row.code)
      #expect(row.coverage == nil)
    }
  }

  @Test func decodedCodingsAreReported() throws {
    let answer = FinishedAnswer(
      status: 200, headers: ["Content-Encoding": "gzip", "Content-Length": "3"], url: "https://b/")
    let reply = try answer.reply(to: makeTag("a", "https://a/"), size: 10, body: .empty)
    #expect(reply.contentCoding == "decoded-gzip")
    #expect(reply.length == .unknown)
  }

  @Test(arguments: [
    ("https://a/", "http://a/", DownloadError.Code.insecureRedirect), ("https://a/", "HTTP://a/", .insecureRedirect),
    ("http://a/", "ftp://a/", .invalidResponse), ("http://a/", "", .invalidResponse),
  ])
  func redirectsThatEndBadly(_ asked: String, _ final: String, _ code: DownloadError.Code) throws {
    let answer = FinishedAnswer(status: 200, headers: [], url: final)
    let error = #expect(throws: DownloadError.self) {
      _ = try answer.reply(to: makeTag("a", asked), size: 1, body: .empty)
    }
    #expect(error?.code == code)
  }

  @Test func limitsTheStoredFields() {
    var fields = (0..<1000).map { HeaderField("X-\($0)", String(repeating: "a", count: 4000)) }
    fields.insert(HeaderField("set-cookie", "a=b"), at: 0)
    fields.insert(HeaderField("X-Long", String(repeating: "a", count: 5000)), at: 0)
    let answer = FinishedAnswer(status: 200, headers: HeaderFields(fields), url: "")
    #expect(answer.headers.fields.count == 128)
    #expect(answer.headers["Set-Cookie"] == nil)
    #expect(answer.headers["X-Long"] == nil)
  }
}
