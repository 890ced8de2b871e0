import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// What replies to the first request of a refresh mean for the published file.
@Suite(.endsHangs)
struct RefreshPlanTests {
  enum Expected: Sendable, Equatable {
    case unchanged, askAgain, judge, reject
  }

  struct Row: Sendable, CustomTestStringConvertible {
    var name: String
    var expected: Expected
    var published: Published?
    var isConditional = true
    var reply: @Sendable (inout SourceReply) -> Void = { _ in }
    var testDescription: String { name }
  }

  /// A change of the checkpoint of the published file.
  struct Published: Sendable {
    var change: @Sendable (inout Checkpoint) -> Void
  }

  private static let url = URL(string: "https://example.org/file.bin?token=1")!
  private static let tag = Validator(entityTag: EntityTag("v1"))
  private static let weak = Validator(entityTag: EntityTag("v1", isWeak: true))
  private static let other = Validator(entityTag: EntityTag("v2"))
  private static func date(_ seconds: TimeInterval, sent: TimeInterval? = nil) -> Validator {
    Validator(
      lastModified: Date(timeIntervalSince1970: seconds), responseDate: sent.map { Date(timeIntervalSince1970: $0) })
  }

  static let rows: [Row] = [
    // 304
    Row(name: "304", expected: .unchanged) { $0.coverage = .none(.notModified) },
    Row(name: "304 without a validator", expected: .unchanged) {
      $0.coverage = .none(.notModified)
      $0.validator = nil
    },
    Row(name: "304, weak", expected: .unchanged) {
      $0.coverage = .none(.notModified)
      $0.validator = weak
    },
    Row(name: "304 with another tag", expected: .askAgain) {
      $0.coverage = .none(.notModified)
      $0.validator = other
    },
    Row(name: "304 of a later URL with another query", expected: .unchanged) {
      $0.coverage = .none(.notModified)
      $0.finalURL = URL(string: "https://example.org/file.bin?token=2")
    },
    Row(name: "304 of another resource", expected: .askAgain) {
      $0.coverage = .none(.notModified)
      $0.finalURL = URL(string: "https://example.org/file-2.bin")
    },
    Row(name: "304 to a request without a condition", expected: .judge, isConditional: false) {
      $0.coverage = .none(.notModified)
    },
    Row(name: "304 to a date", expected: .unchanged, published: Published { $0.validator = date(100) }) {
      $0.coverage = .none(.notModified)
      $0.validator = date(100)
    },
    Row(name: "304 to a date, of an older file", expected: .askAgain, published: Published { $0.validator = date(100) })
    {
      $0.coverage = .none(.notModified)
      $0.validator = date(50)
    },
    Row(
      name: "304 of a file without a known resource", expected: .unchanged, published: Published { $0.resource = nil }
    ) {
      $0.coverage = .none(.notModified)
    },
    // Other refusals
    Row(name: "412", expected: .askAgain) { $0.coverage = .none(.preconditionFailed) },
    Row(name: "412 without a condition", expected: .judge, isConditional: false) {
      $0.coverage = .none(.preconditionFailed)
    },
    Row(name: "404", expected: .judge) { $0.coverage = .none(.status(404)) },
    Row(name: "416", expected: .judge) { $0.coverage = .none(.rangeNotSatisfiable(total: .known(100))) },
    Row(name: "206", expected: .judge) { $0.coverage = .range(0..<100, total: .known(100)) },
    Row(name: "multipart", expected: .judge) { $0.coverage = .multipart },
    // 200
    Row(name: "200 with another tag", expected: .judge) { $0.validator = other },
    Row(name: "200 without a validator", expected: .judge) { $0.validator = nil },
    Row(name: "200 with the same strong tag", expected: .unchanged),
    Row(name: "200 with the same strong tag, not asked", expected: .unchanged, isConditional: false),
    Row(name: "200 with the same weak tag", expected: .judge) { $0.validator = weak },
    Row(name: "200 with the same tag and another length", expected: .judge) { $0.length = .known(101) },
    Row(name: "200 with the same tag and no length", expected: .unchanged) { $0.length = .unknown },
    Row(name: "200 with the same tag of another resource", expected: .judge) {
      $0.finalURL = URL(string: "https://example.org/file-2.bin")
    },
    Row(name: "200 with the same tag in another coding", expected: .judge) { $0.contentCoding = "gzip" },
    Row(
      name: "200 with the same tag in the same coding", expected: .unchanged,
      published: Published { $0.contentCoding = "gzip" }
    ) {
      $0.contentCoding = "gzip"
    },
    Row(name: "200 with the same tag and another digest", expected: .judge) {
      $0.digests = [FileDigest(.sha256, bytes: Array(repeating: 2, count: 32))]
    },
    Row(name: "200 with the same tag and digest", expected: .unchanged) {
      $0.digests = [
        FileDigest(.sha256, bytes: Array(repeating: 1, count: 32)),
        FileDigest(.md5, bytes: Array(repeating: 9, count: 16)),
      ]
    },
    Row(
      name: "200 with the same strong date", expected: .unchanged,
      published: Published { $0.validator = date(100, sent: 160) }
    ) {
      $0.validator = date(100, sent: 900)
    },
    Row(
      name: "200 with the same weak date", expected: .judge,
      published: Published { $0.validator = date(100, sent: 159) }
    ) {
      $0.validator = date(100, sent: 900)
    },
    Row(name: "200 of a page", expected: .reject) {
      $0.validator = nil
      $0.mediaType = "text/html; charset=utf-8"
    },
    Row(name: "200 of a page that was one", expected: .judge, published: Published { $0.mediaType = "text/html" }) {
      $0.validator = other
      $0.mediaType = "text/html"
    },
  ]

  @Test(arguments: rows)
  func plan(_ row: Row) throws {
    var published = Checkpoint(
      ranges: ByteRangeSet([0..<100]), total: .known(100), validator: Self.tag, resource: Self.url.resourceKey,
      name: "file.bin", mediaType: "application/zip",
      digests: [FileDigest(.sha256, bytes: Array(repeating: 1, count: 32))], isComplete: true)
    row.published?.change(&published)
    var request = SourceRequest(url: Self.url)
    if row.isConditional { request.condition = published.validator }
    var reply = SourceReply(
      coverage: .whole, length: .known(100), validator: Self.tag, mediaType: "application/zip", finalURL: Self.url,
      body: .empty)
    row.reply(&reply)
    let plan = RefreshPlan.decide(published: published, request: request, reply: reply)
    let kind: Expected =
      switch plan {
      case .unchanged: .unchanged
      case .askAgain: .askAgain
      case .judge: .judge
      case .reject(let error): error.code == .contentChanged ? .reject : .judge
      }
    #expect(kind == row.expected, "\(plan)")
  }

  @Test("Which sources answer that a file is not modified")
  func isUnmodified() {
    let date = { Self.date($0) }
    #expect(Self.tag.isUnmodified(in: Self.weak) && Self.weak.isUnmodified(in: Self.tag))
    #expect(!Self.tag.isUnmodified(in: Self.other) && !Self.tag.isUnmodified(in: nil))
    #expect(!Self.tag.isUnmodified(in: date(5)), "the tag is the better question")
    #expect(date(5).isUnmodified(in: date(5)) && date(6).isUnmodified(in: date(5)))
    #expect(!date(5).isUnmodified(in: date(6)) && !date(5).isUnmodified(in: Self.tag))
    #expect(!Validator().isUnmodified(in: Self.tag) && !Validator().isUnmodified(in: nil))
  }
}
