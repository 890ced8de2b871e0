import DownpipeLinks
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct LinkExpiryTests {
  private static let base = "https://cdn.example/film.mkv?"

  @Test(
    arguments: [
      // Amazon, version 4: the signing date and a lifetime.
      ("X-Amz-Date=20260131T120000Z&X-Amz-Expires=3600&X-Amz-Signature=abc", "2026-01-31T13:00:00Z"),
      ("x-amz-date=20260131T120000Z&x-amz-expires=0", "2026-01-31T12:00:00Z"),
      // Google, version 4.
      ("X-Goog-Date=20260131T235959Z&X-Goog-Expires=1", "2026-02-01T00:00:00Z"),
      // Version 2 and CloudFront's canned policy: seconds since 1970.
      ("Expires=1769860800&Signature=abc", "2026-01-31T12:00:00Z"),
      // Azure, in the formats that its documentation allows.
      ("sv=2022-11-02&se=2026-01-31T12%3A00%3A00Z&sig=abc", "2026-01-31T12:00:00Z"),
      ("se=2026-01-31T12:00Z&sig=abc", "2026-01-31T12:00:00Z"),
      ("se=2026-01-31&sig=abc", "2026-01-31T00:00:00Z"),
      ("se=2026-01-31T12:00:00.5000000Z&sig=abc", "2026-01-31T12:00:00Z"),
      // Several dates: the earliest counts.
      ("Expires=1769860800&se=2026-01-30&sig=abc", "2026-01-30T00:00:00Z"),
    ])
  func aLinkThatSays(_ query: String, _ expected: String) throws {
    let url = try #require(URL(string: Self.base + query))
    let date = try #require(LinkExpiry.date(of: url))
    let wanted = try Date.ISO8601FormatStyle.iso8601.parse(expected)
    #expect(abs(date.timeIntervalSince(wanted)) < 1)
  }

  @Test func cloudFrontsCustomPolicy() throws {
    let json = """
      {"Statement":[{"Resource":"https://cdn.example/*","Condition":{"DateLessThan":{"AWS:EpochTime":1769860800}}}]}
      """
    let base64 = Data(json.utf8).base64EncodedString()
    let own = base64.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "=", with: "_")
      .replacingOccurrences(of: "/", with: "~")
    let url = try #require(URL(string: Self.base + "Policy=\(own)&Signature=abc"))
    #expect(LinkExpiry.date(of: url) == Date(timeIntervalSince1970: 1_769_860_800))
  }

  @Test(
    arguments: [
      "", "a=b", "Expires=", "Expires=soon", "Expires=3600", "Expires=99999999999999999999", "Expires=-1769860800",
      "se=2026-01-31", "se=tomorrow&sig=abc", "X-Amz-Date=20260131T120000Z", "X-Amz-Expires=3600",
      "X-Amz-Date=20260131T120000Z&X-Amz-Expires=-1", "X-Amz-Date=20261331T120000Z&X-Amz-Expires=10",
      "X-Amz-Date=%C3%A9%C3%A9%C3%A9%C3%A9T120000Z&X-Amz-Expires=10",
      "X-Amz-Date=2026013%C3%A9T12000Z&X-Amz-Expires=10",
      "X-Amz-Date=20260131T120000Z&X-Amz-Expires=9223372036854775807",
      "Policy=%%%", "Policy=AAAA", "Policy=e30_",
    ])
  func aLinkThatDoesNotSay(_ query: String) {
    // A query that is not a valid URL has no date either.
    guard let url = URL(string: Self.base + query) else { return }
    #expect(LinkExpiry.date(of: url) == nil)
  }

  @Test func aQueryOfAnyLengthIsBounded() throws {
    let url = try #require(URL(string: Self.base + "Expires=1769860800&pad=" + String(repeating: "x", count: 20_000)))
    #expect(LinkExpiry.date(of: url) == nil)
  }
}
