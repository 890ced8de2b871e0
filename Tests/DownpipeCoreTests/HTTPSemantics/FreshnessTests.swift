import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// How long a reply is fresh in a private cache (RFC 9111 §4.2, §5.1–5.3).
@Suite(.endsHangs)
struct FreshnessTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var fields: [HeaderField]
    /// Seconds; `nil` when the reply does not say.
    var fresh: Int64?
    init(_ fields: KeyValuePairs<String, String>, _ fresh: Int64?) {
      self.fields = fields.map { HeaderField($0.key, $0.value) }
      self.fresh = fresh
    }
    var testDescription: String { fields.map { "\($0.name): \($0.value)" }.joined(separator: " | ") }
  }

  private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
  private static let inAnHour = "Sun, 06 Nov 1994 09:49:37 GMT"

  private static let year: Int64 = 365 * 86_400

  static let rows: [Row] = [
    // Nothing is guessed.
    Row([:], nil), Row(["Last-Modified": "Sun, 06 Nov 1904 08:49:37 GMT", "Date": date], nil),
    Row(["Age": "5"], nil), Row(["Cache-Control": "public"], nil), Row(["Cache-Control": ""], nil),
    Row(["Cache-Control": "immutable, must-revalidate"], nil), Row(["Pragma": "no-cache"], nil),
    // max-age
    Row(["Cache-Control": "max-age=60"], 60), Row(["cache-control": "MAX-AGE=60"], 60),
    Row(["Cache-Control": " public ,\tmax-age=60 , immutable"], 60), Row(["Cache-Control": "max-age=\"60\""], 60),
    Row(["Cache-Control": "max-age=0"], 0), Row(["Cache-Control": ",,max-age=60,,"], 60),
    Row(["Cache-Control": "max-age=60", "Age": "20"], 40), Row(["Cache-Control": "max-age=60", "Age": "60"], 0),
    Row(["Cache-Control": "max-age=60", "Age": "61"], 0),
    Row(["Cache-Control": "max-age=60", "Age": "99999999999999999999999"], 0),
    // An age that is none is ignored; of several, the first counts.
    Row(["Cache-Control": "max-age=60", "Age": "-20"], 60), Row(["Cache-Control": "max-age=60", "Age": "x"], 60),
    Row(["Cache-Control": "max-age=60", "Age": ""], 60), Row(["Cache-Control": "max-age=60", "Age": "20, 30"], 40),
    // The cap, also against overflow.
    Row(["Cache-Control": "max-age=31536000"], year), Row(["Cache-Control": "max-age=31536001"], year),
    Row(["Cache-Control": "max-age=99999999999999999999999"], year),
    Row(["Cache-Control": "max-age=9223372036854775807", "Age": "9223372036854775807"], 0),
    Row(["Cache-Control": "max-age=00000000000000000000000000000060"], 60),
    // What is malformed is not fresh.
    Row(["Cache-Control": "max-age=-1"], 0), Row(["Cache-Control": "max-age"], 0),
    Row(["Cache-Control": "max-age="], 0), Row(["Cache-Control": "max-age=1.5"], 0),
    Row(["Cache-Control": "max-age=60s"], 0), Row(["Cache-Control": "max-age=+60"], 0),
    Row(["Cache-Control": "max-age=6 0"], 0), Row(["Cache-Control": "max-age=\"60"], 0),
    Row(["Cache-Control": "max-age=６０"], 0), Row(["Cache-Control": "max-age=\"\""], 0),
    Row(["Cache-Control": "max-age=60, private=\"a, no-cache"], 0), Row(["Cache-Control": "max-age=60, x=\"\\"], 0),
    // Of several, the shortest.
    Row(["Cache-Control": "max-age=60, max-age=30"], 30), Row(["Cache-Control": "max-age=30, max-age=60"], 30),
    Row(["Cache-Control": "max-age=60", "cache-control": "max-age=10"], 10),
    Row(["Cache-Control": "max-age=60, max-age=x"], 0),
    // Not for a private cache, and not there at all.
    Row(["Cache-Control": "s-maxage=5, max-age=60"], 60), Row(["Cache-Control": "s-maxage=60"], nil),
    Row(["Cache-Control": "x-max-age=60"], nil), Row(["Cache-Control": "ext=\"max-age=60\""], nil),
    Row(["Cache-Control": "ext=\"a\\\"b, no-store\", max-age=60"], 60),
    // no-cache and no-store
    Row(["Cache-Control": "no-cache"], 0), Row(["Cache-Control": "max-age=60, no-cache"], 0),
    Row(["Cache-Control": "no-cache=\"Set-Cookie\", max-age=60"], 0), Row(["Cache-Control": "No-Store, max-age=60"], 0),
    Row(["Cache-Control": "max-age=60", "Cache-Control": "no-store"], 0),
    // Expires
    Row(["Expires": inAnHour, "Date": date], 3_600), Row(["Expires": date, "Date": date], 0),
    Row(["Expires": date, "Date": inAnHour], 0), Row(["Expires": inAnHour, "Date": date, "Age": "600"], 3_000),
    Row(["Expires": "Sunday, 06-Nov-94 09:49:37 GMT", "Date": date], 3_600),
    Row(["Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": date], year),
    Row(["Expires": "0", "Date": date], 0), Row(["Expires": "-1", "Date": date], 0),
    Row(["Expires": "tomorrow", "Date": date], 0), Row(["Expires": "", "Date": date], 0),
    Row(["Expires": inAnHour], 0), Row(["Expires": inAnHour, "Date": "now"], 0),
    Row(["Expires": inAnHour, "Expires": "0", "Date": date], 0),
    Row(["Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Expires": inAnHour, "Date": date], 3_600),
    // max-age goes before Expires, in both directions.
    Row(["Cache-Control": "max-age=60", "Expires": "0"], 60),
    Row(["Cache-Control": "max-age=0", "Expires": inAnHour, "Date": date], 0),
  ]

  @Test(arguments: rows)
  func freshness(_ row: Row) throws {
    for status in [200, 206, 304] {
      let reply = try SourceReply(
        httpStatus: status, headers: HeaderFields(row.fields + [HeaderField("Content-Range", "bytes 0-4/5")]),
        url: URL(filePath: "/unused"), body: .empty)
      #expect(reply.freshFor == row.fresh.map { .seconds($0) }, "\(status)")
    }
  }

  @Test("An error says nothing about the file")
  func errors() throws {
    for status in [204, 404, 412, 416, 500] {
      let reply = try SourceReply(
        httpStatus: status, headers: ["Cache-Control": "max-age=60"], url: URL(filePath: "/unused"), body: .empty)
      #expect(reply.freshFor == nil, "\(status)")
    }
  }

  @Test("Any bytes are read without a trap, and never as fresher than a year", arguments: 0..<200 as Range<UInt64>)
  func hostile(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let words = [
      "max-age", "=", "\"", "\\", ",", "no-cache", "9", "18446744073709551616", " ", "\t", "é", "🛰️", "-", "0",
    ]
    let text = (0..<40).map { _ in words.randomElement(using: &generator) ?? "" }.joined()
    let reply = try SourceReply(
      httpStatus: 200, headers: ["Cache-Control": text, "Age": text, "Expires": text, "Date": text],
      url: URL(filePath: "/unused"), body: .empty)
    if let fresh = reply.freshFor { #expect(fresh >= .zero && fresh <= SourceReply.longestFreshness) }
  }

  /// The clock of a device that jumps makes files stale, not fresh for ever.
  @Test func clocks() {
    let now = Date(timeIntervalSince1970: 1_000_000_000)
    typealias Refresh = DownloadRequest.Refresh
    func asks(_ offset: TimeInterval?) -> Bool {
      Refresh.whenStale.asks(at: now, freshUntil: offset.map { now.addingTimeInterval($0) })
    }
    #expect(asks(nil) && asks(-1) && asks(0) && asks(-.infinity))
    #expect(!asks(0.001) && !asks(86_400) && !asks(365 * 86_400))
    #expect(asks(366 * 86_400) && asks(.infinity))
    #expect(Refresh.ifChanged.asks(at: now, freshUntil: now.addingTimeInterval(60)))
    #expect(!Refresh.never.asks(at: now, freshUntil: nil))
  }
}
