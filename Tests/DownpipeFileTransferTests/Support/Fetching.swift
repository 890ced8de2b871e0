#if LIBCURL
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import Testing

  struct Fetched: Sendable {
    var reply: SourceReply
    var bytes: [UInt8]
  }

  extension SourceSession {
    /// Opens the URL and reads the whole body.
    func fetch(
      _ url: URL, range: RequestedRange? = nil, headers: HeaderFields = [], isNamedByServer: Bool = false
    ) async throws -> Fetched {
      let reply = try await open(
        SourceRequest(url: url, range: range, headers: headers, isNamedByServer: isNamedByServer))
      return Fetched(reply: reply, bytes: try await reply.bytes())
    }

    /// The error of opening the URL, or of its body.
    func failure(_ url: URL, range: RequestedRange? = nil, isNamedByServer: Bool = false) async -> DownloadError? {
      do {
        _ = try await fetch(url, range: range, isNamedByServer: isNamedByServer)
        return nil
      } catch { return error as? DownloadError }
    }
  }

  func url(_ text: String) throws -> URL { try DownloadRequest(text, id: "").url }

  /// Calls `body` with the session of a source and stops the session afterwards.
  func withRunning<R>(_ source: FileTransferSource, _ body: (any SourceSession) async throws -> R) async throws -> R {
    let session = try await source.start(in: SourceContext())
    return try await withCleanup {
      await session.stop()
    } _: {
      try await body(session)
    }
  }
#endif
