import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeBackgroundURLSession

func makeTag(
  _ id: DownloadID = "film", _ url: String = "https://example.org/film.mkv", _ range: RequestedRange? = nil,
  ifRange: String? = nil, condition: String? = nil
) throws -> TransferTag {
  try TransferTag(
    SourceRequest(url: try #require(URL(string: url)), id: id, range: range), ifRange: ifRange, condition: condition)
}

@Suite(.endsHangs)
struct TransferTagTests {
  @Test func textsComeBackAsTheyWere() throws {
    let long = "https://example.org/" + String(repeating: "a", count: 16_000)
    for tag in [
      try makeTag(), try makeTag("ä\"\\\u{0}\n\u{1F600}"), try makeTag("a", long),
      try makeTag("a", "HTTP://[::1]:8/?a=b#c"),
      try makeTag("a", "http://a/", RequestedRange(from: 0)),
      try makeTag("a", "http://a/", RequestedRange(from: 5, to: 6)),
      try makeTag("a", "http://a/", RequestedRange(from: .max - 1, to: .max), ifRange: "\"v\\1\""),
      try makeTag(DownloadID(String(repeating: "\u{0}", count: 255)), long),
      try makeTag("a", "http://a/", condition: "W/\"v\\1\""),
      try makeTag(
        DownloadID(String(repeating: "\u{0}", count: 255)), long, condition: String(repeating: "é", count: 512)),
    ] {
      #expect(TransferTag(description: tag.text) == tag)
    }
    // An answer to one question is none to another.
    #expect(
      try makeTag(condition: "\"v1\"") != makeTag() && makeTag(condition: "\"v1\"") != makeTag(condition: "\"v2\""))
    // The format of tasks that older versions of the app have started.
    #expect(
      try makeTag("a", "http://a/b", RequestedRange(from: 1, to: 3), ifRange: "\"v\"").text
        == #"downpipe/1 {"end":3,"id":"a","if":"\"v\"","start":1,"url":"http://a/b"}"#)
  }

  @Test(arguments: [
    nil, "", "downpipe/1 ", "downpipe/1 {}", "downpipe/2 {\"id\":\"a\",\"url\":\"http://a/\"}",
    "{\"id\":\"a\",\"url\":\"http://a/\"}", "downpipe/1 {\"id\":\"\",\"url\":\"http://a/\"}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"file:///etc/passwd\"}", "downpipe/1 {\"id\":\"a\",\"url\":\"\"}",
    "downpipe/1 {\"id\":1,\"url\":\"http://a/\"}", "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"start\":-1}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"start\":5,\"end\":5}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"end\":5}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"start\":9223372036854775808}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"start\":1.5}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"if\":\"\\\"v\\\"\"}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"start\":1,\"if\":\"a\\r\\nB: c\"}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"unless\":\"a\\r\\nB: c\"}",
    "downpipe/1 {\"id\":\"a\",\"url\":\"http://a/\",\"start\":1,\"unless\":\"\\\"v\\\"\"}",
    "downpipe/1 " + String(repeating: "[", count: 50_000), "downpipe/1 " + String(repeating: "a", count: 1_000_000),
    "downpipe/1 {\"id\":\"" + String(repeating: "a", count: 256) + "\",\"url\":\"http://a/\"}",
  ])
  func invalidDescriptionsAreRefused(_ text: String?) {
    #expect(TransferTag(description: text) == nil)
  }

  @Test func longValuesAreRefused() throws {
    for make: () throws -> TransferTag in [
      { try makeTag(DownloadID(String(repeating: "a", count: 256))) },
      { try makeTag("a", "http://a/" + String(repeating: "a", count: 16_384)) },
      { try makeTag("a", "http://a/", RequestedRange(from: 1), ifRange: String(repeating: "a", count: 1025)) },
    ] {
      #expect(throws: DownloadError.self) { _ = try make() }
    }
  }
}
