import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Replies that contradict what is known of the file, over real sockets: nothing of them is published, and nothing on disk is
  /// given up. The file has 100 bytes of `video/mp4`, and the first reply is cut after 40.
  @Suite struct ContradictionTests {
    struct Message: Sendable, CustomTestStringConvertible {
      var mediaType: String?
      var body: String
      var isChunked = false
      var testDescription: String { "\(mediaType ?? "no type"), \(body.count) bytes\(isChunked ? ", chunked" : "")" }

      func reply(_ headers: HeaderFields) -> ScriptedReply {
        var headers = headers
        headers["Content-Type"] = mediaType
        return isChunked
          ? .chunked(body.isEmpty ? [] : [Array(body.utf8)], headers: headers)
          : ScriptedReply(200, headers, body: .text(body))
      }
    }

    static let messages: [Message] = [
      Message(mediaType: "text/plain", body: "expired"),
      Message(mediaType: "application/json", body: #"{"error":"link expired"}"#),
      Message(mediaType: "application/xml", body: "<Error><Code>ExpiredToken</Code></Error>"),
      Message(mediaType: "text/html; charset=utf-8", body: "<html>Who are you?</html>"),
      Message(mediaType: "video/mp4", body: ""), Message(mediaType: nil, body: ""),
      Message(mediaType: nil, body: "expired"), Message(mediaType: "application/octet-stream", body: "expired"),
      Message(mediaType: "text/plain", body: "expired", isChunked: true),
      Message(mediaType: nil, body: "expired", isChunked: true),
      Message(mediaType: nil, body: "", isChunked: true),
      Message(mediaType: "text/plain", body: String(repeating: "expired ", count: 40)),
    ]

    static let validators: [HeaderFields] = [
      [], ["ETag": "\"v1\""], ["ETag": "W/\"v1\""], ["ETag": "\"message\""], ["ETag": "W/\"message\""],
    ]

    private static func film(_ headers: HeaderFields = ["ETag": "\"v1\""]) -> ScriptedReply {
      var headers = headers
      headers["Content-Type"] = "video/mp4"
      return ServerMatrix.broken(headers)
    }

    @Test("a message in place of the rest of a film is refused", arguments: messages, validators)
    func message(_ message: Message, _ validator: HeaderFields) async throws {
      let result = try await ServerMatrixRun(restarts: false).perform { request in
        request.number == 1 ? Self.film() : message.reply(validator)
      }
      #expect(result.file.isEmpty && result.status.state.phase == .failed)
      #expect(result.status.error?.code == .contentChanged, "\(String(describing: result.status.error))")
      #expect(result.status.progress.received == 40)
      #expect(result.partials.last == Array(ServerMatrix.file[..<40]))
      // The same once more without a range.
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil])
    }

    @Test("the error says what the server sends now")
    func words() async throws {
      let result = try await ServerMatrixRun(restarts: false).perform { request in
        request.number == 1 ? Self.film() : Self.messages[0].reply([])
      }
      #expect(
        result.status.error?.message.hasPrefix("the server now sends 7 bytes of text/plain, not 100 bytes of video/mp4")
          == true)
    }

    @Test("the strong tag of the file with another size is refused", arguments: [7, 41, 99, 101, 5000])
    func sameTagOtherSize(size: Int) async throws {
      let other = DownloadFixtures.pattern(size: size, seed: 3)
      let result = try await ServerMatrixRun(restarts: false).perform { request in
        request.number == 1 ? Self.film() : ScriptedReply(200, ["ETag": "\"v1\""], body: .bytes(other))
      }
      #expect(result.file.isEmpty && result.status.error?.code == .contentChanged)
    }

    @Test("a shorter file needs a later date", arguments: [nil, -3600, 0, 3600])
    func shorterFile(later: TimeInterval?) async throws {
      let date = Date(timeIntervalSince1970: 1_700_000_000)
      @Sendable func headers(_ tag: String, _ offset: TimeInterval?) -> HeaderFields {
        var headers: HeaderFields = ["ETag": tag]
        headers["Last-Modified"] = offset.map { HTTPDate.string(from: date.addingTimeInterval($0)) }
        return headers
      }
      let short = Array(ServerMatrix.other[..<20])
      let result = try await ServerMatrixRun(restarts: false).perform { request in
        request.number == 1
          ? Self.film(headers("\"v1\"", 0)) : ScriptedReply(200, headers("\"v2\"", later), body: .bytes(short))
      }
      #expect(result.file == (later == 3600 ? short : []))
    }

    // MARK: Ranges

    @Test(
      "a range that comes as 200 is that range if its bytes are, with and without its Content-Range",
      arguments: [true, false],
      [true, false])
    func rangeAs200(hasRange: Bool, isRight: Bool) async throws {
      let rest = isRight ? Array(ServerMatrix.file[30...]) : Array(ServerMatrix.other[30...])
      let result = try await ServerMatrixRun(restarts: false).perform { request in
        guard request.number > 1 else { return Self.film() }
        guard request.headers["Range"] != nil else { return ServerMatrix.good(ServerMatrix.file, for: request) }
        return ScriptedReply(
          200, hasRange ? ["ETag": "\"v1\"", "Content-Range": "bytes 30-99/100"] : ["ETag": "\"v1\""],
          body: .bytes(rest))
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-"] + (isRight ? [] : [nil]))
    }

    @Test(
      "a server that refuses each range is asked for the whole file",
      arguments: [400, 403, 404, 405, 406, 412, 500, 501])
    func refusedRange(status: Int) async throws {
      let result = try await ServerMatrixRun(restarts: false).perform { request in
        if request.number == 1 { return Self.film() }
        return request.headers["Range"] != nil ? .status(status) : ServerMatrix.good(ServerMatrix.file, for: request)
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.status.attempts == 2)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.rangeRefused)])
    }

    @Test(
      "a part of the file that was not asked for is not the file", arguments: ["bytes 0-49/100", "bytes 50-99/100"])
    func partAs200(range: String) async throws {
      let result = try await ServerMatrixRun(attempts: 1, restarts: false).perform { _ in
        ScriptedReply(200, ["Content-Range": range], body: .bytes(Array(ServerMatrix.file[..<50])))
      }
      #expect(result.file.isEmpty && result.status.error?.code == .unreadableRange)
    }

    // MARK: The tool

    @Test("a finished film is not replaced by a message when it is refreshed", arguments: messages.prefix(6))
    func refresh(_ message: Message) async throws {
      let film = ScriptedContent.pattern(size: 300_000, seed: 3)
      try await DefectRun.with { request in
        request.number == 1
          ? ScriptedReply(200, ["Content-Type": "video/mp4"], body: film) : message.reply([])
      } _: { run in
        let first = try await run.get(["/film"])
        #expect(first.status == 0, "\(first.everything)")
        let second = try await run.get(["/film"], ["--refresh"])
        #expect(second.status == 1 && second.everything.contains("contentChanged"), "\(second.everything)")
        #expect(try run.folder.read("out/film") == film.allBytes)
      }
    }

    @Test("a dry run says what the server sends in place of the rest")
    func dryRun() async throws {
      let film = ScriptedContent.pattern(size: 300_000, seed: 3)
      try await DefectRun.with { request in
        let headers: HeaderFields = ["Content-Type": "video/mp4", "Content-Length": "300000"]
        return request.number == 1
          ? ScriptedReply([.head(200, headers), .send(film.bytes(in: 0..<200_000)), .close])
          : Self.messages[0].reply([])
      } _: { run in
        _ = try await run.get(["/film"], ["--retry", "1"])
        let outcome = try await run.get(["/film"], ["--dry-run"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(
          outcome.everything.contains("the server now sends 7 bytes of text/plain, not 300,000 bytes of video/mp4"),
          "\(outcome.everything)")
      }
    }
  }
}
