import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Servers that reply to a range request with other bytes than they say, or with wrong validators and lengths.
  ///
  /// The file has 100 bytes, and the first reply is cut after 40. The other file differs from it at each byte.
  @Suite struct ServerMatrixLiarTests {
    typealias Note = ServerMatrixTrace.Note

    // MARK: Validators

    @Test("a server ignores If-Range and sends the rest of the new file with its new tag")
    func newFileDespiteIfRange() async throws {
      let result = try await ServerMatrixRun().perform { request in
        request.number == 1
          ? ServerMatrix.broken() : .file(.bytes(ServerMatrix.other), etag: "\"v2\"", ignoreIfRange: true, for: request)
      }
      #expect(result.file == ServerMatrix.other)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged), .restarted(.contentChanged)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil])
      #expect(result.trace.asked.map(\.ifRange) == [nil, "\"v1\"", nil])
    }

    /// A strong validator that stays the same means that the bytes stay the same (RFC 9110 §8.8.1). Some servers break
    /// this, so the bytes are compared.
    @Test("the old tag with new bytes is noticed, and refused: only a restart by hand takes them")
    func oldTagNewBytes() async throws {
      let result = try await ServerMatrixRun().perform { request in
        request.number == 1 ? ServerMatrix.broken() : ServerMatrix.good(ServerMatrix.other, for: request)
      }
      #expect(result.file == ServerMatrix.other)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged), .failed(.contentChanged, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil, nil])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40, 40])
    }

    @Test("the old tag with new bytes, except the compared ones, is not noticed without a digest")
    func oldTagNewBytesExceptTheCompared() async throws {
      let result = try await ServerMatrixRun().perform { request in
        request.number == 1 ? ServerMatrix.broken() : ServerMatrix.good(ServerMatrix.nearlyOther, for: request)
      }
      #expect(result.file == Array(ServerMatrix.file[..<40] + ServerMatrix.other[40...]))
      #expect(result.trace.notes == [ServerMatrix.cut])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-"])
    }

    @Test("the old tag with new bytes is noticed without a known size too")
    func oldTagNewBytesOfUnknownSize() async throws {
      let result = try await ServerMatrixRun().perform { request in
        guard request.number == 1 else { return ServerMatrix.good(ServerMatrix.other, for: request) }
        return ScriptedReply([
          .head(200, ["ETag": "\"v1\"", "Transfer-Encoding": "chunked"]), .send("28\r\n"),
          .send(Array(ServerMatrix.file[..<40])), .close,
        ])
      }
      #expect(result.file == ServerMatrix.other)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged), .failed(.contentChanged, nil)])
    }

    enum Promise: String, CaseIterable, Sendable {
      /// The request has the digest of the new file.
      case expected
      /// The replies of the new file have its digest.
      case reprDigest
      /// The first reply has the digest of the old file, and the later ones have none.
      case oldReprDigest
    }

    @Test("the old tag with new bytes, except the compared ones, is noticed by a digest", arguments: Promise.allCases)
    func oldTagNewBytesWithDigest(promise: Promise) async throws {
      let old = try FileDigest.sha256(of: ServerMatrix.file)
      let new = try FileDigest.sha256(of: ServerMatrix.nearlyOther)
      var run = ServerMatrixRun()
      run.verifiesChecksums = true
      if promise == .expected { run.change = { $0.expectedDigests = [new] } }
      let result = try await run.perform { request in
        if request.number == 1 {
          return ServerMatrix.broken(
            promise == .oldReprDigest ? ["ETag": "\"v1\"", "Repr-Digest": old.field] : ["ETag": "\"v1\""])
        }
        let answer = ServerMatrix.good(ServerMatrix.nearlyOther, for: request)
        return promise == .reprDigest ? answer.setting(["Repr-Digest": new.field]) : answer
      }
      #expect(result.file == ServerMatrix.nearlyOther)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.digestMismatch, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil])
    }

    @Test("resumed by hand after a wrong digest, the file is fetched again, not the same wrong bytes")
    func resumedAfterWrongBytes() async throws {
      let digest = try FileDigest.sha256(of: ServerMatrix.nearlyOther)
      var run = ServerMatrixRun(verifiesChecksums: true, attempts: 1)
      run.resumed = [.network, .digestMismatch]
      run.change = { $0.expectedDigests = [digest] }
      let result = try await run.perform { request in
        request.number == 1 ? ServerMatrix.broken() : ServerMatrix.good(ServerMatrix.nearlyOther, for: request)
      }
      #expect(result.file == ServerMatrix.nearlyOther, "\(result.trace.notes)")
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.digestMismatch, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil])
    }

    @Test("bytes on disk that differ from the file of the digest give way to it, without a restart")
    func otherBytesWithDigest() async throws {
      let digest = try FileDigest.sha256(of: ServerMatrix.other)
      var run = ServerMatrixRun(verifiesChecksums: true, restarts: false)
      run.change = { $0.expectedDigests = [digest] }
      let result = try await run.perform { request in
        request.number == 1 ? ServerMatrix.broken() : ServerMatrix.good(ServerMatrix.other, for: request)
      }
      #expect(result.file == ServerMatrix.other, "\(result.trace.notes)")
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged), .restarted(.contentChanged)])
    }

    /// RFC 9110 §8.8.3: a tag identifies a version of one resource. Two hosts may use the same tag for different files.
    @Test(
      "a mirror is another resource: its tags and dates say nothing about the first one's",
      arguments: [
        ["ETag": "\"v1\""],
        ["Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Last-Modified": "Mon, 13 Nov 2023 22:13:20 GMT"],
      ] as [HeaderFields])
    func mirrorWithTheSameValidator(validator: HeaderFields) async throws {
      let result = try await Self.mirrored(first: validator) { request in
        .file(
          .bytes(ServerMatrix.other), etag: validator["ETag"],
          lastModified: validator["Last-Modified"].flatMap(HTTPDate.date(from:)),
          date: validator["Date"].flatMap(HTTPDate.date(from:)), for: request)
      }
      #expect(result.file == ServerMatrix.other, "\(result.trace)")
    }

    @Test("a mirror with another tag and the same bytes")
    func mirrorWithAnotherTag() async throws {
      let result = try await Self.mirrored { ServerMatrix.good(ServerMatrix.file, "\"m1\"", for: $0) }
      #expect(result.file == ServerMatrix.file)
      // Tags of two resources are not comparable: every byte on disk is compared, and stays.
      #expect(
        result.trace.notes == [
          ServerMatrix.cut, .refused(.rangeRefused), .failed(.httpStatus, 404), .refused(.rangeIgnored),
        ])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil, "bytes=30-"])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40, 40])
    }

    @Test("a mirror without a tag: what is on disk is compared", arguments: [true, false])
    func mirrorWithoutTag(isSame: Bool) async throws {
      let bytes = isSame ? ServerMatrix.file : ServerMatrix.other
      let result = try await Self.mirrored { ServerMatrix.good(bytes, nil, for: $0) }
      #expect(result.file == bytes)
      let notes = [ServerMatrix.cut, .refused(.rangeRefused), .failed(.httpStatus, 404)]
      if isSame {
        // A mirror without a tag replies to a request with If-Range with the whole file.
        #expect(result.trace.notes == notes + [.refused(.rangeIgnored)])
      } else {
        // Its file is taken only after a restart by hand.
        #expect(
          result.trace.notes.starts(
            with: notes + [.refused(.rangeIgnored), .refused(.contentChanged), .failed(.contentChanged, nil)]))
      }
      #expect(result.trace.asked.allSatisfy { $0.onDisk == 40 || $0.onDisk == 0 && $0.range == nil })
    }

    /// The first 40 bytes come from one URL, which then fails, and the rest from another.
    static func mirrored(
      first: HeaderFields = ["ETag": "\"v1\""], _ mirror: @escaping @Sendable (ScriptedRequest) -> ScriptedReply
    ) async throws -> ServerMatrixRun.Result {
      var run = ServerMatrixRun()
      run.change = { request in request.mirrors = [request.url.appending(path: "mirror")] }
      return try await run.perform { request in
        if request.path.hasSuffix("/mirror") { return mirror(request) }
        return request.number == 1 ? ServerMatrix.broken(first) : .status(404)
      }
    }

    // MARK: Lengths

    @Test("a 206 whose Content-Length is not that of its Content-Range", arguments: [1, 60, 69, 71, 100, 5000])
    func contentLengthDisagrees(length: Int) async throws {
      let body = Array((ServerMatrix.file + ServerMatrix.other)[30..<min(30 + length, 200)])
      let result = try await ServerMatrixRun().perform { request in
        switch request.number {
        case 1: ServerMatrix.broken()
        case 2: ScriptedReply(ServerMatrix.range("30-99/100", body, length: length).steps + [.close])
        default: ServerMatrix.good(ServerMatrix.file, for: request)
        }
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.lengthMismatch, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", "bytes=30-"])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40])
    }

    /// A body that ends within the compared bytes removes none of them.
    @Test("a body that ends too early is resumed where it ended", arguments: [true, false], [35, 40, 41, 70])
    func shortBody(isChunked: Bool, end: Int) async throws {
      let rest = Array(ServerMatrix.file[30..<end])
      let result = try await ServerMatrixRun().perform { request in
        switch request.number {
        case 1: ServerMatrix.broken()
        case 2 where isChunked: ServerMatrix.chunked("30-99/100", [rest])
        case 2: ScriptedReply(ServerMatrix.range("30-99/100", rest, length: 70).steps + [.close])
        default: ServerMatrix.good(ServerMatrix.file, for: request)
        }
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(isChunked ? .lengthMismatch : .network, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", "bytes=\(max(end, 40) - 10)-"])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, Int64(max(end, 40))])
    }

    @Test(
      "nothing behind the announced end is written",
      arguments: [[30, 50], [70, 10], [80], [71], [1, 500], [10, 61]])
    func longBody(chunks: [Int]) async throws {
      let result = try await ServerMatrixRun().perform { request in
        switch request.number {
        case 1: return ServerMatrix.broken()
        case 2:
          var rest = (ServerMatrix.file + DownloadFixtures.pattern(size: 900, seed: 9))[30...]
          let pieces = chunks.map { count in
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
          }
          return ServerMatrix.chunked("30-99/100", pieces)
        default: return ServerMatrix.good(ServerMatrix.file, for: request)
        }
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.lengthMismatch, nil)])
      #expect(result.partials.allSatisfy { ServerMatrix.file.starts(with: $0) })
    }

    @Test(
      "bytes after the end of a body are discarded",
      arguments: [
        "garbage", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
        "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes 30-99/100\r\nContent-Length: 70\r\n\r\n"
          + String(repeating: "x", count: 70),
      ])
    func garbageBehindTheBody(garbage: String) async throws {
      let ids = (0..<6).map { DownloadID("file\($0)") }
      // One after the other, so that a connection with unread bytes would be used again.
      let results = try await ServerMatrixRun(concurrent: 1).perform(ids) { _, request in
        switch request.number {
        case 1: return ServerMatrix.broken()
        default:
          let start = Int(request.range?.start ?? 0)
          return ServerMatrix.range(
            "\(start)-99/100", ServerMatrix.file[start...] + Array(garbage.utf8), length: 100 - start)
        }
      }
      for id in ids {
        #expect(results[id]?.file == ServerMatrix.file)
        #expect(results[id]?.trace.asked.first == .init(range: nil, ifRange: nil, onDisk: 0))
        #expect(results[id]?.trace.asked.dropFirst().first?.range == "bytes=30-")
      }
    }

    @Test("a range without a total is not taken for the end of the file")
    func rangeWithoutTotal() async throws {
      let result = try await ServerMatrixRun().perform { request in
        switch request.number {
        case 1:
          ScriptedReply([
            .head(200, ["ETag": "\"v1\"", "Transfer-Encoding": "chunked"]), .send("28\r\n"),
            .send(Array(ServerMatrix.file[..<40])), .close,
          ])
        case 2: ServerMatrix.range("30-69/*", Array(ServerMatrix.file[30..<70]))
        default: ServerMatrix.good(ServerMatrix.file, for: request)
        }
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", "bytes=60-"])
    }
  }
}
