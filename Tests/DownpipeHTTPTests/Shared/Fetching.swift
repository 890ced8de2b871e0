#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  #if LIBCURL
    import DownpipeHTTP
  #endif

  /// A reply and its whole body.
  struct Fetched: Sendable {
    var reply: SourceReply
    var bytes: [UInt8]
  }

  extension SourceSession {
    /// Opens the URL and reads the whole body.
    func fetch(
      _ url: URL, range: RequestedRange? = nil, validator: Validator? = nil, headers: HeaderFields = []
    ) async throws -> Fetched {
      let reply = try await open(SourceRequest(url: url, range: range, validator: validator, headers: headers))
      return Fetched(reply: reply, bytes: try await reply.bytes())
    }
  }

  func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  /// Calls `body` with the session of a source and stops the session afterwards.
  func withRunning<R>(
    _ source: any Source, _ body: (any SourceSession) async throws -> R
  ) async throws -> R {
    let session = try await source.start(in: SourceContext())
    return try await withCleanup {
      await session.stop()
    } _: {
      try await body(session)
    }
  }

  #if LIBCURL
    /// The same with an `HTTPSource` of the default settings.
    func withRunning<R>(_ body: (any SourceSession) async throws -> R) async throws -> R {
      try await withRunning(HTTPSource(), body)
    }
  #endif
#endif
