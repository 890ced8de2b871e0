import DownpipeChecksum
import DownpipeCore
import DownpipeTesting
import Foundation

/// One file of the server, and what goes wrong with it.
struct DemoFile {
  enum Fault: Equatable {
    /// The first reply is cut after this many bytes.
    case cut(after: Int64)
    /// The first reply is 503 with `Retry-After: 1`.
    case busy
    /// Every reply has other bytes than the digest promises.
    case damaged
  }

  var name: String
  /// What the server sends.
  var content: ScriptedContent
  var bytesPerSecond: Int
  var fault: Fault?
  var priority = Priority.normal
  /// What is expected on disk, where it differs from ``content``.
  var unpacked: ScriptedContent?

  static let all = [
    DemoFile(
      name: "film.mkv", content: .pattern(size: 9_000_000, seed: 1), bytesPerSecond: 2_000_000, priority: .high),
    DemoFile(
      name: "album.flac", content: .pattern(size: 6_000_000, seed: 2), bytesPerSecond: 1_800_000,
      fault: .cut(after: 2_500_000)),
    DemoFile(
      name: "system.iso", content: .pattern(size: 3_000_000, seed: 3), bytesPerSecond: 2_000_000, fault: .busy),
    DemoFile(
      name: "damaged.zip", content: .pattern(size: 750_000, seed: 4), bytesPerSecond: 1_500_000, fault: .damaged),
    DemoFile(name: "東京の夜景.jpg", content: .pattern(size: 1_500_000, seed: 5), bytesPerSecond: 1_500_000),
    DemoFile(
      name: "notes.txt.gz", content: .bytes(packedNotes), bytesPerSecond: 1_000_000,
      unpacked: .text(String(repeating: "12:00 All is well.\n", count: 1000))),
  ]

  private static let packedNotes = [UInt8](
    Data(
      base64Encoded: """
        H4sIAAAAAAACA+3IoQ0AIRAAMM8UNwEB5DuGQZCcQ7A+a7xoZfv4WouZGfvEXZm1dKWUUkoppZRSSimllFJKKaWUUkoppZRSSiml\
        lFJKKaWUUkoppZRSSimllFJKKfW/eiTGoFA4SgAA
        """) ?? Data())

  /// Starts the server, on this machine only.
  static func startServer() async throws -> ScriptedHTTPServer {
    try await ScriptedHTTPServer.start { request in
      guard let file = all.first(where: { "/" + $0.name == request.path.removingPercentEncoding }) else {
        return .status(404)
      }
      let isFirst = request.number == 1
      if file.fault == .busy, isFirst { return .status(503, retryAfter: .seconds(1)) }
      let reply = ScriptedReply.file(file.content, etag: "\"1\"", for: request)
        .after(.throttle(bytesPerSecond: file.bytesPerSecond))
      if case .cut(let count) = file.fault, isFirst { return reply.truncated(after: count, reset: true) }
      return reply
    }
  }

  /// The request, with the digest that the file must have.
  func request(to server: ScriptedHTTPServer) throws -> DownloadRequest {
    var digest = try DigestComputation(.sha256)
    digest.update((content.allBytes + (fault == .damaged ? [0] : [])).span.bytes)
    return DownloadRequest(
      server.url().appending(path: name), priority: priority
    ).with(\.expectedDigests, [digest.finalize()])
  }

  /// Whether the right bytes are on disk, and the download met its fault.
  func isAsExpected(_ status: DownloadStatus, in folder: String) -> Bool {
    guard fault != .damaged else {
      return status.error?.code == .digestMismatch && !FileManager.default.fileExists(atPath: folder + "/" + name)
    }
    let bytes = status.artifact?.path.flatMap(FileManager.default.contents)
    let hasMetFault =
      switch fault {
      case .busy: status.attempts > 1
      case .cut: status.resumedFrom > 0
      case .damaged, nil: true
      }
    return hasMetFault && bytes.map(Array.init) == (unpacked ?? content).allBytes
  }
}
