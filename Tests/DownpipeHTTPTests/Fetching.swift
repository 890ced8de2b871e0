import DownpipeCore
import DownpipeHTTP
import DownpipeTesting
import Foundation
import Synchronization

/// What a fetch brought.
struct Fetched: Sendable {
  var reply: SourceReply
  var bytes: [UInt8]
}

/// Collects the bytes that are pushed.
final class Collector: Sendable {
  private let collected = Mutex<[UInt8]>([])
  var bytes: [UInt8] { collected.withLock { $0 } }
  func append(_ span: RawSpan) {
    span.withUnsafeBytes { buffer in collected.withLock { $0 += buffer } }
  }
}

extension SourceSession {
  /// Opens and reads the whole body.
  func fetch(
    _ url: URL, range: RequestedRange? = nil, validator: Validator? = nil, headers: HeaderFields = []
  ) async throws -> Fetched {
    let reply = try await open(SourceRequest(url: url, range: range, validator: validator, headers: headers))
    let collector = Collector()
    try await reply.body.forEachChunk { collector.append($0) }
    return Fetched(reply: reply, bytes: collector.bytes)
  }
}

/// Runs `body` with the session of a source, and stops it afterwards.
func withRunning<R>(
  _ source: HTTPSource = HTTPSource(), _ body: (any SourceSession) async throws -> R
) async throws -> R {
  let running = try await source.start(in: SourceContext())
  do {
    let result = try await body(running)
    await running.stop()
    return result
  } catch {
    await running.stop()
    throw error
  }
}

/// The download error that `work` throws; `nil` when it throws none or another.
func failure<R>(_ work: () async throws -> R) async -> DownloadError? {
  do {
    _ = try await work()
    return nil
  } catch {
    return error as? DownloadError
  }
}
