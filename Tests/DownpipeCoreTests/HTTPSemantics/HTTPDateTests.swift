import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct HTTPDateTests {
  @Test(arguments: [
    ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0),
    ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
    ("Sun Nov  6 08:49:37 1994", 784_111_777),
    ("  Sun, 06 Nov 1994 08:49:37 GMT ", 784_111_777),
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
    ("sun, 06 NOV 1994 08:49:37 GMT", 784_111_777),
    ("Sun, 06-Nov-1994 08:49:37 GMT", 784_111_777),
    ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
  ])
  func legal(_ text: String, _ expected: Double) {
    #expect(HTTPDate.date(from: text)?.timeIntervalSince1970 == expected)
  }

  @Test(arguments: [
    "", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 2024 00:00:00 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
    "Xun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nev 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1494 08:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
    "Sun, 06 Nov 1994 08-49-37 GMT", "Sun, 06 Nov 1994 08:49:37 gmt", "Sun, 06 Nov 1\u{664}4 08:49:37 GMT",
    "Sun, 06 Nov +994 08:49:37 GMT", "Sun, 06 Nov 1994 +8:49:37 GMT", "Sun, 06 Nov 19940 08:49:37 GMT", "1994-11-06",
    "Sun, 06 Nov 1994 08:49:37 GMT" + String(repeating: " ", count: 1000) + "x",
  ])
  func illegal(_ text: String) {
    #expect(HTTPDate.date(from: text) == nil)
  }

  @Test(arguments: [
    (784_111_777.0, "Sun, 06 Nov 1994 08:49:37 GMT"),
    (0.9, "Thu, 01 Jan 1970 00:00:00 GMT"),
    (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
    (.infinity, "Fri, 31 Dec 9999 23:59:59 GMT"),
    (-1e300, "Sat, 01 Jan 0000 00:00:00 GMT"),
  ])
  func written(_ seconds: Double, _ expected: String) {
    #expect(HTTPDate.string(from: Date(timeIntervalSince1970: seconds)) == expected)
  }

  struct Corpus: Decodable {
    struct Case: Decodable {
      var date: String
      var expected: Double
    }
    var cases: [Case]
  }

  /// curl parses many more formats than HTTP has. The formats that we parse must have the same meaning.
  @Test(.enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpus() throws {
    let corpus = try Corpora.read("vectors/curl-dates.json", as: Corpus.self)
    var read = 0
    for item in corpus.cases {
      guard let date = HTTPDate.date(from: item.date) else { continue }
      read += 1
      #expect(date.timeIntervalSince1970 == item.expected, "\(item.date)")
    }
    #expect(read >= 5)
  }
}
