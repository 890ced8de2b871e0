package import DownpipeCore
import Synchronization

/// Collects the bytes that a body pushes.
package final class Collector: Sendable {
  private let collected = Mutex<[UInt8]>([])

  package init() {}

  package var bytes: [UInt8] { collected.withLock { $0 } }

  package func append(_ span: RawSpan) {
    span.withUnsafeBytes { buffer in collected.withLock { $0 += buffer } }
  }
}

/// Compares a body with the server's content without keeping it in memory.
package final class BodyCheck: Sendable {
  private let content: ScriptedContent
  private let position: Mutex<Int64>
  private let wrong = Atomic(false)

  package init(_ content: ScriptedContent, from start: Int64 = 0) {
    self.content = content
    position = Mutex(start)
  }

  /// The end of the correct bytes; `nil` after a wrong byte.
  package var end: Int64? { wrong.load(ordering: .relaxed) ? nil : position.withLock { $0 } }

  package var sink: ChunkSink {
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
  /// Reads the whole body into memory.
  package func bytes() async throws -> [UInt8] {
    let collector = Collector()
    try await body.forEachChunk { collector.append($0) }
    return collector.bytes
  }
}

/// The ``DownloadError`` that `work` throws; `nil` when it throws nothing or another error.
package func downloadError<R>(_ work: () async throws -> R) async -> DownloadError? {
  do {
    _ = try await work()
    return nil
  } catch {
    return error as? DownloadError
  }
}

/// The result of fetching a response that a scripted server sends unchanged before it closes the connection.
package func result(
  of answer: String, from source: some Source
) async throws -> (bytes: [UInt8]?, error: DownloadError?) {
  try await withScriptedServer { _ in
    ScriptedReply([.send(answer), .close])
  } _: { server in
    let session = try await source.start(in: SourceContext())
    return try await withCleanup {
      await session.stop()
    } _: {
      do {
        return (try await session.open(SourceRequest(url: server.url())).bytes(), nil)
      } catch {
        return (nil, error as? DownloadError)
      }
    }
  }
}
