import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import Synchronization

/// Checks a body against what the server sends, without keeping it.
final class BodyCheck: Sendable {
  private let content: ScriptedContent
  private let position: Mutex<Int64>
  private let wrong = Atomic(false)

  init(_ content: ScriptedContent, from start: Int64 = 0) {
    self.content = content
    position = Mutex(start)
  }

  /// How far the right bytes reach; `nil` once a byte was wrong.
  var end: Int64? { wrong.load(ordering: .relaxed) ? nil : position.withLock { $0 } }

  var sink: ChunkSink {
    { chunk in
      let start = self.position.withLock { position in
        defer { position += Int64(chunk.byteCount) }
        return position
      }
      if !self.content.matches(chunk, at: start) { self.wrong.store(true, ordering: .relaxed) }
    }
  }
}

extension SourceReply {
  /// The whole body, which must be small.
  func bytes() async throws -> [UInt8] {
    let bytes = Mutex<[UInt8]>([])
    try await body.forEachChunk { chunk in
      chunk.withUnsafeBytes { buffer in bytes.withLock { $0 += buffer } }
    }
    return bytes.withLock { $0 }
  }
}

/// Runs `body` with the session of a source, which is stopped afterwards.
func withSource<R>(
  _ configuration: URLSessionSource.Configuration = .ephemeral, _ body: (any SourceSession) async throws -> R
) async throws -> R {
  let source = try await URLSessionSource(configuration).start(in: SourceContext())
  do {
    let result = try await body(source)
    await source.stop()
    return result
  } catch {
    await source.stop()
    throw error
  }
}

/// The error that `body` throws.
func downloadError(_ body: () async throws -> Void) async -> DownloadError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? DownloadError
  }
}
