/// A function that takes the chunks of a body one after the other, on a thread of the transport or of the reader.
///
/// It returns when the chunk has been dealt with. The transport reads no further until then, which is the only
/// back-pressure. A sink that throws ends the transfer.
public typealias ChunkSink = @Sendable (RawSpan) throws -> Void

/// The bytes of a reply, pushed by the transport through a synchronous sink.
public struct Body: Sendable {
  /// What a source knows of a body only when the body has ended.
  public struct End: Sendable, Hashable {
    /// The digests of the whole file that came after the body, as `Repr-Digest` in a trailer section (RFC 9110 §6.5, RFC
    /// 9530 §3). The engine adds them to those of ``SourceReply/digests``.
    public var digests: [FileDigest]
    /// Whether the body may have been cut off: neither a length nor the protocol tells where it ends, and the connection
    /// was closed without the sign by which TLS excludes a cut (the closure alert, RFC 8446 §6.1, RFC 9112 §9.8).
    ///
    /// Unless the size or a digest of the file is known, the engine fetches the file once more to compare it.
    public var isUnconfirmed: Bool

    /// Creates an end; by default the one of a body that is known to be complete and has no trailer.
    public init(digests: [FileDigest] = [], isUnconfirmed: Bool = false) {
      self.digests = digests
      self.isUnconfirmed = isUnconfirmed
    }
  }

  private let push: @Sendable (@escaping ChunkSink) async throws -> End
  private let abandon: @Sendable () -> Void

  /// The path of a file that already holds the whole body; `nil` when there is no such file.
  ///
  /// URLSession's download tasks hand over a finished file. A storage may move it instead of copying its bytes. If it
  /// was neither moved nor read nor discarded, for example because the disk was full, the same bytes are requested
  /// again, and the source should then hand over the file again.
  /// ``forEachChunk(_:)`` pushes the bytes of the file too.
  public let file: String?

  /// Creates a body from a function that pushes its chunks, and that has nothing to tell at its end.
  ///
  /// A body that wraps another one is made with ``pushing(file:discard:_:)``, so that it hands on the end.
  ///
  /// - Parameters:
  ///   - file: The path of a finished file, for transports that hand over one.
  ///   - discard: Ends the request when the bytes are not wanted. It may be called more than once, and after `push` has
  ///     returned or thrown, when there is nothing left to end.
  ///   - push: Calls the sink for each chunk, in order and never concurrently, and returns after the last one. It
  ///     throws when the body ends early, and `CancellationError` when its task is cancelled.
  public init(
    file: String? = nil,
    discard: @escaping @Sendable () -> Void = {},
    push: @escaping @Sendable (_ sink: @escaping ChunkSink) async throws -> Void
  ) {
    self.init(
      file: file, discard: discard,
      untilEnd: { sink in
        try await push(sink)
        return End()
      })
  }

  private init(
    file: String?, discard: @escaping @Sendable () -> Void,
    untilEnd push: @escaping @Sendable (_ sink: @escaping ChunkSink) async throws -> End
  ) {
    self.file = file
    self.abandon = discard
    self.push = push
  }

  /// Returns a body from a function that pushes its chunks and returns what is known at the end.
  ///
  /// ```swift
  /// func counted(_ body: Body, _ count: @escaping @Sendable (Int) -> Void) -> Body {
  ///   .pushing(file: body.file, discard: { body.discard() }) { sink in
  ///     try await body.forEachChunk { chunk in
  ///       count(chunk.byteCount)
  ///       try sink(chunk)
  ///     }
  ///   }
  /// }
  /// ```
  /// - Parameters:
  ///   - file: The path of a finished file, for transports that hand over one.
  ///   - discard: Ends the request when the bytes are not wanted; see ``init(file:discard:push:)``.
  ///   - push: Calls the sink for each chunk as in ``init(file:discard:push:)``, and returns the end of the body.
  public static func pushing(
    file: String? = nil, discard: @escaping @Sendable () -> Void = {},
    _ push: @escaping @Sendable (_ sink: @escaping ChunkSink) async throws -> End
  ) -> Body {
    Body(file: file, discard: discard, untilEnd: push)
  }

  /// Creates a body from an asynchronous sequence of chunks.
  ///
  /// The next chunk is requested when the previous one has been taken. Empty chunks are skipped.
  ///
  /// ```swift
  /// SourceReply(coverage: .whole, body: Body(chunks))    // an AsyncStream<[UInt8]>, say
  /// ```
  /// Use it for sources that have such a sequence already: a task hop for each chunk costs more than pushing.
  /// - Parameters:
  ///   - chunks: The chunks. An error thrown by the sequence ends the transfer: a ``DownloadError`` is passed on as it
  ///     is, any other error is reported with `.network`. Cancelling the task must end the sequence.
  ///   - pace: The pace of the request, which is kept after each chunk.
  ///   - discard: Ends the request when the bytes are not wanted.
  public init<Chunks: AsyncSequence & Sendable>(
    _ chunks: Chunks, pace: TransferPace = .unlimited, discard: @escaping @Sendable () -> Void = {}
  ) where Chunks.Element == [UInt8] {
    self.init(discard: discard) { sink in
      for try await chunk in chunks where !chunk.isEmpty {
        try sink(chunk.span.bytes)
        try await pace.keep(after: chunk.count)
      }
      // A sequence may end without an error when its task is cancelled.
      try Task.checkCancellation()
    }
  }

  /// Returns a body of bytes that are in memory.
  public static func bytes(_ bytes: [UInt8]) -> Body {
    Body { sink in
      if !bytes.isEmpty { try sink(bytes.span.bytes) }
    }
  }

  /// A body without bytes.
  public static var empty: Body { Body { _ in } }

  /// Pushes every chunk through `sink`. Call it once.
  ///
  /// `sink` runs on a thread of the transport, or on the caller's for bytes that are in memory. The transport waits for it
  /// to return, which is the back-pressure: there is no queue and no task hop for each chunk. Chunks have any size but are never empty.
  /// - Returns: What the source knows of the body at its end.
  /// - Throws: The error thrown by `sink`; ``DownloadError`` when the body ends early; `CancellationError` when the
  ///   task is cancelled.
  @discardableResult public func forEachChunk(_ sink: @escaping ChunkSink) async throws -> End {
    try await push(sink)
  }

  /// Pushes every chunk through `sink` as an array, for sinks that keep the bytes. Each chunk is copied.
  ///
  /// The contract is otherwise that of ``forEachChunk(_:)``.
  @discardableResult public func forEachArray(
    _ sink: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws -> End {
    try await push { chunk in try sink(chunk.withUnsafeBytes { [UInt8]($0) }) }
  }

  /// Ends the request without reading the body. It has no effect once the body has been read.
  public func discard() { abandon() }
}
