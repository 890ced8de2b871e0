import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Each row of the table of what a reply may say beside what is known of the file.
@Suite(.endsHangs)
struct ReplyRowTests {
  typealias Change = @Sendable (inout Checkpoint, inout SourceReply) -> Void

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var row: ReplyRow
    var occasion = ReplyRow.Occasion.resumed
    var hasDigest = false
    var change: Change = { _, _ in }
    var testDescription: String { name }
  }

  private static let url = URL(string: "https://example.org/film.mp4?token=1")!
  private static let elsewhere = URL(string: "https://mirror.example.net/film.mp4")!
  private static let tag = Validator(entityTag: EntityTag("v1"))
  private static let other = Validator(entityTag: EntityTag("v2"))
  private static let weak = Validator(entityTag: EntityTag("v1", isWeak: true))
  private static let otherWeak = Validator(entityTag: EntityTag("v2", isWeak: true))
  private static func date(_ seconds: TimeInterval) -> Validator {
    Validator(lastModified: Date(timeIntervalSince1970: seconds))
  }
  private static func other(_ seconds: TimeInterval) -> Validator {
    Validator(entityTag: EntityTag("v2"), lastModified: Date(timeIntervalSince1970: seconds))
  }
  private static func digest(_ byte: UInt8) -> FileDigest {
    FileDigest(.sha256, bytes: Array(repeating: byte, count: 32))
  }

  /// 40 of 100 bytes of a film are on disk. The reply is the whole film, with the same strong tag.
  static let cases: [Case] = [
    Case(name: "the same", row: .fits),
    Case(name: "no validator", row: .fits) { $1.validator = nil },
    Case(name: "no length", row: .fits) { $1.length = .unknown },
    Case(name: "no media type", row: .fits) { $1.mediaType = nil },
    Case(name: "octets", row: .fits) { $1.mediaType = "application/octet-stream" },
    Case(name: "another film type", row: .fits) { $1.mediaType = "video/webm" },
    Case(name: "octets that become text", row: .fits) {
      ($0.mediaType, $1.mediaType) = ("application/octet-stream", "text/plain")
    },
    Case(name: "text that becomes a film", row: .fits) { known, _ in known.mediaType = "text/plain" },
    Case(name: "text of another type of text", row: .fits) {
      ($0.mediaType, $1.mediaType) = ("text/plain", "text/csv")
    },
    Case(name: "nothing known", row: .fits, occasion: .first) { known, _ in known = Checkpoint() },

    Case(name: "empty", row: .empty) { $1.length = .known(0) },
    Case(name: "empty, refreshed", row: .empty, occasion: .refreshed) { $1.length = .known(0) },
    Case(name: "empty, restarted", row: .empty, occasion: .permitted) { known, reply in
      known = known.facts
      reply.length = .known(0)
    },
    Case(name: "empty, and nothing else is known", row: .empty) { known, reply in
      known = Checkpoint(ranges: ByteRangeSet(0..<1))
      reply.length = .known(0)
    },
    Case(name: "empty as before", row: .fits, occasion: .first) { known, reply in
      known = Checkpoint(total: .known(0), mediaType: "text/plain")
      (reply.length, reply.mediaType) = (.known(0), "text/plain")
    },

    Case(name: "a page", row: .page) { $1.mediaType = "text/html; charset=utf-8" },
    Case(name: "a page with the same tag and size", row: .page) { $1.mediaType = "TEXT/HTML" },
    Case(name: "a page with another tag", row: .page) { ($1.mediaType, $1.validator) = ("text/html", other) },
    Case(name: "a page, refreshed", row: .page, occasion: .refreshed) { $1.mediaType = "text/html" },
    Case(name: "a page after an automatic restart", row: .page, occasion: .first) { known, reply in
      known = known.facts
      reply.mediaType = "text/html"
    },
    Case(name: "a page after an automatic restart, with a digest", row: .fits, occasion: .first, hasDigest: true) {
      $0 = $0.facts
      $1.mediaType = "text/html"
    },
    Case(name: "a page as the range", row: .page) {
      ($1.coverage, $1.mediaType) = (.range(30..<100, total: .known(100)), "text/html")
    },
    Case(name: "a page that was one", row: .fits) { ($0.mediaType, $1.mediaType) = ("text/html", "text/html") },
    Case(name: "a page that becomes JSON", row: .fits) {
      ($0.mediaType, $1.mediaType) = ("text/html", "application/json")
    },
    Case(name: "text that becomes a page", row: .page) { ($0.mediaType, $1.mediaType) = ("text/csv", "text/html") },

    Case(name: "text", row: .otherKind) { $1.mediaType = "text/plain" },
    Case(name: "JSON", row: .otherKind) { $1.mediaType = "application/problem+json" },
    Case(name: "XML", row: .otherKind) { $1.mediaType = "application/xml" },
    Case(name: "JSON in place of text", row: .otherKind) {
      ($0.mediaType, $1.mediaType) = ("text/csv", "application/json")
    },
    Case(name: "text with another tag and a later date", row: .otherKind) { known, reply in
      known.validator = date(100)
      (reply.mediaType, reply.validator) = ("text/plain", date(200))
    },
    Case(name: "text, refreshed", row: .otherKind, occasion: .refreshed) { $1.mediaType = "text/plain" },
    Case(name: "text, restarted", row: .otherKind, occasion: .permitted) {
      $0 = $0.facts
      $1.mediaType = "text/plain"
    },
    Case(name: "a range of the known size that is called text", row: .fits) {
      ($1.coverage, $1.mediaType) = (.range(30..<100, total: .known(100)), "text/plain")
    },

    Case(name: "another tag, restarted", row: .permittedOther, occasion: .permitted) { $1.validator = other },
    Case(name: "another size, restarted", row: .permittedOther, occasion: .permitted) {
      ($1.validator, $1.length) = (nil, .known(7))
    },
    Case(name: "the same tag and another size, refreshed", row: .permittedOther, occasion: .refreshed) {
      $1.length = .known(7)
    },
    Case(name: "another coding, with bytes of a changed URL", row: .permittedOther, occasion: .permitted) {
      $1.contentCoding = "gzip"
    },
    Case(name: "the same, restarted", row: .fits, occasion: .permitted),

    Case(name: "the same tag and another size", row: .sameValidatorOtherSize) { $1.length = .known(101) },
    Case(name: "the same weak tag and another size", row: .sameValidatorOtherSize) { known, reply in
      (known.validator, reply.validator, reply.length) = (weak, weak, .known(7))
    },
    Case(name: "the same date and another size", row: .sameValidatorOtherSize) { known, reply in
      (known.validator, reply.validator, reply.length) = (date(100), date(100), .known(7))
    },
    Case(name: "the same tag and a range of another size", row: .sameValidatorOtherSize) {
      $1.coverage = .range(30..<99, total: .known(99))
    },
    Case(name: "the same tag and less than the bytes on disk", row: .sameValidatorOtherSize) {
      ($0.total, $1.length) = (.unknown, .known(39))
    },
    Case(name: "the same tag and another size in another coding", row: .otherCoding) {
      ($1.length, $1.contentCoding) = (.known(7), "gzip")
    },

    Case(name: "another tag, shorter than the bytes on disk", row: .shorterWithoutLaterDate) {
      ($1.validator, $1.length) = (other, .known(39))
    },
    Case(name: "another weak tag, shorter", row: .shorterWithoutLaterDate) { known, reply in
      (known.validator, reply.validator, reply.length) = (weak, otherWeak, .known(7))
    },
    Case(name: "an earlier date, shorter", row: .shorterWithoutLaterDate) { known, reply in
      (known.validator, reply.validator, reply.length) = (date(100), date(50), .known(7))
    },
    Case(name: "another tag and the same date, shorter", row: .shorterWithoutLaterDate) { known, reply in
      known.validator?.lastModified = Date(timeIntervalSince1970: 100)
      (reply.validator, reply.length) = (other(100), .known(7))
    },

    Case(name: "another tag", row: .otherVersion) { $1.validator = other },
    Case(name: "another tag and size", row: .otherVersion) { ($1.validator, $1.length) = (other, .known(50)) },
    Case(name: "another weak tag", row: .otherVersion) { ($0.validator, $1.validator) = (weak, otherWeak) },
    Case(name: "a later date", row: .otherVersion) { ($0.validator, $1.validator) = (date(100), date(200)) },
    Case(name: "another tag and a later date, shorter", row: .otherVersion) { known, reply in
      known.validator?.lastModified = Date(timeIntervalSince1970: 100)
      (reply.validator, reply.length) = (other(200), .known(7))
    },
    Case(name: "another tag in another coding", row: .otherVersion) {
      ($1.validator, $1.contentCoding) = (other, "gzip")
    },
    Case(name: "another tag, to a range", row: .otherVersion) {
      ($1.coverage, $1.validator) = (.range(30..<100, total: .known(100)), other)
    },
    Case(name: "another tag after an automatic restart", row: .otherVersion, occasion: .first) {
      $0 = $0.facts
      $1.validator = other
    },

    Case(name: "another digest", row: .otherDigest) { ($0.digests, $1.digests) = ([digest(1)], [digest(2)]) },
    Case(name: "another digest with another tag", row: .otherVersion) {
      ($0.digests, $1.digests, $1.validator) = ([digest(1)], [digest(2)], other)
    },
    Case(name: "the same digest with another tag", row: .fits) {
      ($0.digests, $1.digests, $1.validator) = ([digest(1)], [digest(1)], other)
    },

    Case(name: "another size, no validator", row: .otherSize) { ($1.validator, $1.length) = (nil, .known(7)) },
    Case(name: "a larger size, no validator", row: .otherSize) { ($1.validator, $1.length) = (nil, .known(101)) },
    Case(name: "less than the bytes on disk", row: .otherSize) { known, reply in
      (known.total, known.validator, reply.length) = (.unknown, nil, .known(39))
    },
    Case(name: "another form of tag and another size", row: .otherSize) {
      ($1.validator, $1.length) = (otherWeak, .known(101))
    },
    Case(name: "a mirror with another size", row: .otherSize) {
      ($1.finalURL, $1.validator, $1.length) = (elsewhere, other, .known(101))
    },
    Case(name: "another size after an automatic restart", row: .otherSize, occasion: .first) {
      $0 = $0.facts
      ($1.validator, $1.length) = (nil, .known(7))
    },
    Case(name: "the same with a digest", row: .fits, occasion: .first, hasDigest: true) {
      $0 = $0.facts
      ($1.validator, $1.length) = (nil, .known(7))
    },

    Case(name: "another coding", row: .otherCoding) { ($1.validator, $1.contentCoding) = (nil, "gzip") },
    Case(name: "no coding any more", row: .otherCoding) { ($0.contentCoding, $1.validator) = ("gzip", nil) },

    Case(name: "another form of tag", row: .otherProof) { $1.validator = otherWeak },
    Case(name: "an earlier date", row: .otherProof) { ($0.validator, $1.validator) = (date(100), date(50)) },
    Case(name: "another tag of a mirror", row: .otherProof) { ($1.finalURL, $1.validator) = (elsewhere, other) },
    Case(name: "a later date of a mirror", row: .otherProof) { known, reply in
      known.validator = date(100)
      (reply.finalURL, reply.validator) = (elsewhere, date(200))
    },
    Case(name: "another tag of the host of a changed URL", row: .otherProof, occasion: .permitted) {
      ($1.finalURL, $1.validator) = (elsewhere, other)
    },
  ]

  @Test(arguments: cases)
  func row(_ test: Case) {
    var known = Checkpoint(
      ranges: ByteRangeSet(0..<40), total: .known(100), validator: Self.tag, resource: Self.url.resourceKey,
      mediaType: "video/mp4")
    var reply = SourceReply(
      coverage: .whole, length: .known(100), validator: Self.tag, mediaType: "video/mp4", finalURL: Self.url,
      body: .empty)
    test.change(&known, &reply)
    let request = SourceRequest(url: Self.url)
    let row = ReplyRow.of(reply, to: request, known: known, test.occasion, hasDigest: test.hasDigest)
    #expect(row == test.row)
  }

  @Test func everyRowHasACase() { #expect(Set(Self.cases.map(\.row)) == Set(ReplyRow.allCases)) }

  @Test("an error says what the server sends and what was expected")
  func messages() {
    let known = Checkpoint(ranges: ByteRangeSet(0..<2_000_000), total: .known(3_000_000), mediaType: "video/mp4")
    let reply = SourceReply(coverage: .whole, length: .known(7), mediaType: "text/plain; charset=utf-8", body: .empty)
    #expect(
      ReplyRow.otherKind.error(reply, known: known).message
        == "the server now sends 7 bytes of text/plain, not 3,000,000 bytes of video/mp4: most likely a message about an "
        + "error or an expired link")
    let bare = SourceReply(coverage: .whole, length: .known(1), body: .empty)
    let little = Checkpoint(ranges: ByteRangeSet(0..<1234))
    #expect(
      ReplyRow.otherSize.error(bare, known: little).message.hasPrefix(
        "the server now sends 1 byte, not at least 1,234 bytes: "))
  }

  @Test("the documentation has the table as it is")
  func documentation() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../../Sources/DownpipeCore/DownpipeCore.docc/RepliesBesideWhatIsKnown.md")
    let text = try String(contentsOf: file, encoding: .utf8)
    for row in ReplyRow.allCases {
      #expect(text.contains("| `\(row.rawValue)` |"), "no row “\(row)”")
      let line = text.split(separator: "\n").first { $0.hasPrefix("| `\(row.rawValue)` |") } ?? ""
      #expect(line.contains("| \(row.decision.rawValue) | \(row.reason) |"), "\(line)")
    }
  }

  // MARK: What the bytes of a reply are

  @Test("a reply is read as what its bytes are, if they are what it says")
  func asRead() {
    func read(
      _ coverage: Coverage, length: ByteCount, claimed: Coverage? = nil,
      asked: RequestedRange? = RequestedRange(from: 30),
      total: ByteCount = .known(100)
    ) -> Coverage {
      var reply = SourceReply(coverage: coverage, length: length, body: .empty)
      reply.claimedRange = claimed
      return reply.asRead(to: SourceRequest(url: Self.url, range: asked), total: total).coverage
    }
    let range = Coverage.range(30..<100, total: .known(100))
    // A 206 that was not asked for.
    #expect(read(.range(0..<100, total: .known(100)), length: .known(100), asked: nil) == .whole)
    #expect(read(.range(0..<99, total: .known(100)), length: .known(99), asked: nil) != .whole)
    #expect(read(.range(0..<100, total: .known(100)), length: .known(99), asked: nil) != .whole)
    #expect(read(.range(0..<100, total: .unknown), length: .known(100), asked: nil) != .whole)
    // A 200 with the range that was asked for.
    #expect(read(.whole, length: .known(70), claimed: range) == range)
    #expect(read(.whole, length: .unknown, claimed: range) == range)
    #expect(read(.whole, length: .known(100), claimed: .range(0..<100, total: .known(100))) == .whole)
    for (length, claimed, asked) in [
      (70, range, nil), (71, range, RequestedRange(from: 30)), (60, .range(40..<100, total: .known(100)), nil),
      (50, .range(0..<50, total: .known(100)), nil),
    ] as [(Int64, Coverage, RequestedRange?)] {
      guard case .unreadable = read(.whole, length: .known(length), claimed: claimed, asked: asked) else {
        Issue.record("\(length) \(claimed) was read")
        continue
      }
    }
    // A 200 with just the length that was asked for.
    #expect(read(.whole, length: .known(70)) == range)
    #expect(
      read(.whole, length: .known(10), asked: RequestedRange(from: 30, to: 40)) == .range(30..<40, total: .known(100)))
    #expect(read(.whole, length: .known(100)) == .whole)
    #expect(read(.whole, length: .known(70), total: .unknown) == .whole)
    #expect(read(.whole, length: .known(70), asked: nil) == .whole)
    #expect(read(.whole, length: .unknown) == .whole)
  }
}
