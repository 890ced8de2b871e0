import DownpipeCore
import Synchronization

extension SourceReply {
  /// Reads the whole body.
  func bytes() async throws -> [UInt8] {
    let bytes = Mutex<[UInt8]>([])
    try await body.forEachChunk { chunk in
      bytes.withLock { bytes in chunk.withUnsafeBytes { bytes += $0 } }
    }
    return bytes.withLock { $0 }
  }
}

/// The error that `work` throws.
func downloadError<R>(_ work: () async throws -> R) async -> DownloadError? {
  do {
    _ = try await work()
    return nil
  } catch {
    return error as? DownloadError
  }
}
