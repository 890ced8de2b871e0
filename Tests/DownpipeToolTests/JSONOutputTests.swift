import DownpipeCore
import DownpipeJSON
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct JSONOutputTests {
  private struct Line: Decodable, Equatable {
    struct Failure: Decodable, Equatable {
      var code: String
      var stage: String?
      var message: String
    }
    var event: String
    var id: String
    var url: String
    var path: String?
    var bytes: Int64
    var attempts: Int
    var resumedFrom: Int64
    var bytesFetched: Int64
    var error: Failure?
  }

  private func decode(_ line: String) throws -> Line {
    #expect(!line.contains("\n"))
    return try JSONDecoder().decode(Line.self, from: Data(line.utf8))
  }

  @Test("The line of a finished download has every key, in order")
  func finished() throws {
    let line = JSONOutput.line(Samples.result(bytes: 2048, attempts: 2, resumedFrom: 1000))
    #expect(
      line == #"{"event":"finished","id":"00000000deadbeef","url":"https://example.org/film.mkv","#
        + #""path":"/files/film.mkv","bytes":2048,"attempts":2,"resumedFrom":1000,"bytesFetched":1048,"error":null}"#)
  }

  @Test("The line of a download has what was verified, and from where")
  func verified() throws {
    var result = Samples.result(bytes: 1)
    result.verified = [VerifiedDigest(FileDigest(.crc32, bytes: [0, 1, 2, 255]), from: .checksumFile)]
    result.verified.append(VerifiedDigest(try #require(PieceDigests(.crc32, length: 1, bytes: [0, 1, 2, 3]))))
    #expect(
      JSONOutput.line(result).contains(
        #","verified":[{"algorithm":"crc32","digest":"000102ff","source":"checksum file"},"#
          + #"{"algorithm":"crc32","digest":null,"source":"pieces"}]}"#))
  }

  @Test("A finished download says that its end is unconfirmed")
  func unconfirmedEnd() throws {
    var result = Samples.result(bytes: 2048)
    let line = JSONOutput.line(result)
    result.isEndUnconfirmed = true
    #expect(JSONOutput.line(result) == line.dropLast() + #","end":"unconfirmed"}"#)
  }

  @Test("The line of a failed download has the error")
  func failed() throws {
    let error = DownloadError(.httpStatus, "the server answered 404", stage: "HTTPSource", httpStatus: 404)
    let line = try decode(JSONOutput.line(Samples.result(bytes: 0, error: error)))
    #expect(line.event == "failed")
    #expect(line.path == nil)
    #expect(line.error == .init(code: "httpStatus", stage: "HTTPSource", message: "the server answered 404"))
  }

  @Test(
    "Any text stays on one line of JSON and decodes to itself",
    arguments: [
      "plain", "quo\"te", "back\\slash", "new\nline\r\t", "\u{0}\u{1}\u{1F}\u{7F}", "\u{85}\u{2028}\u{2029}", "東京 é 👍",
      "e\u{301}",
      "\r\n", "/",
    ])
  func escaping(_ text: String) throws {
    let line = try decode(JSONOutput.line(Samples.result(path: text, url: text)))
    #expect(line.path.map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
    #expect(Array(line.url.unicodeScalars) == Array(text.unicodeScalars))
  }

  @Test("Outputs hide the values of queries, and the id tells the downloads apart, unless URLs are asked for")
  func secrets() throws {
    let url = "https://me:hunter2@example.org/?hunter2&id=hunter2#hunter2"
    let hidden = "https://…@example.org/?…&id=…"
    let (result, status) = (
      Samples.result(error: DownloadError(.network, "no"), url: url), Samples.status(.paused, name: nil, url: url)
    )
    let board = BoardLayout(columns: 200, rows: 9, hasColor: false)
    #expect(JSONOutput.line(result).contains("\"url\":\"\(hidden)\""))
    #expect(PlainOutput.line(result) == "failed\t\(hidden)\tnetwork\t00000000deadbeef")
    #expect(PlainOutput.message(failed: result) == "\(hidden) [00000000deadbeef]: no")
    #expect(board.line(result) == "✗ \(hidden) [00000000deadbeef]: no")
    #expect(RecordTable.row(status).hasSuffix("  \(hidden)") && RecordTable.json(status).contains(hidden))

    let whole = URLStyle(isWhole: true)
    #expect(JSONOutput.line(result, whole).contains(url) && PlainOutput.line(result, whole).contains(url))
    #expect(PlainOutput.message(failed: result, whole) == "\(url): no")
    #expect(RecordTable.row(status, whole).hasSuffix("  \(url)") && RecordTable.json(status, whole).contains(url))
  }

  @Test("States and progress have their own lines")
  func progress() throws {
    struct Event: Decodable {
      var event: String
      var state: String?
      var reason: String?
      var bytes: Int64
      var total: Int64?
      var bytesPerSecond: Int64?
      var secondsRemaining: Int64?
    }
    let status = Samples.status(received: 1000, total: .known(3000), speed: 500.4)
    let state = try JSONDecoder().decode(
      Event.self, from: Data(StatusLine.state(status, url: "u").utf8))
    #expect(state.event == "state" && state.state == "transferring" && state.total == 3000)
    let line = try JSONDecoder().decode(
      Event.self, from: Data(StatusLine.progress(status, url: "u").utf8))
    #expect(line.event == "progress" && line.bytes == 1000 && line.bytesPerSecond == 500 && line.secondsRemaining == 3)
    let unknown = Samples.status(.waiting(.gate(id: "gate", text: "it is night")), speed: .infinity)
    let waiting = try JSONDecoder().decode(
      Event.self, from: Data(StatusLine.state(unknown, url: "u").utf8))
    #expect(waiting.reason == "it is night" && waiting.total == nil)
    #expect(StatusLine.progress(unknown, url: "u").contains(#""bytesPerSecond":null"#))
  }
}
