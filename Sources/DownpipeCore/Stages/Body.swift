/// Takes the chunks of a body, one after the other, on whatever thread the transport has.
///
/// It returns when the chunk is dealt with, which is all the back-pressure there is: the transport
/// reads no further before. A sink that throws ends the transfer.
public typealias ChunkSink = @Sendable (RawSpan) throws -> Void

/// The bytes of a reply, pushed by the transport.
public struct Body: Sendable {
  private let push: @Sendable (@escaping ChunkSink) async throws -> Void
  private let abandon: @Sendable () -> Void

  /// A path at which the transport has already put the whole body (URLSession's download tasks do);
  /// a storage may move it instead of copying. ``forEachChunk(_:)`` works all the same.
  public let file: String?

  /// Makes a body.
  ///
  /// - Parameters:
  ///   - file: a finished file, for transports that hand over one.
  ///   - discard: ends the request when nobody wants the bytes. May be called more than once, and after
  ///     `push` has returned or thrown, when there is nothing left to end.
  ///   - push: calls the sink for each chunk, in order and never at the same time, and returns after
  ///     the last one. It throws when the body ends early, and `CancellationError` when its task is cancelled.
  public init(
    file: String? = nil,
    discard: @escaping @Sendable () -> Void = {},
    push: @escaping @Sendable (_ sink: @escaping ChunkSink) async throws -> Void
  ) {
    self.file = file
    self.abandon = discard
    self.push = push
  }

  /// A body of chunks that come from an asynchronous sequence, one at a time: the next one is asked for when the last one
  /// has been taken. Empty chunks are passed over.
  ///
  /// ```swift
  /// SourceReply(coverage: .whole, body: Body(chunks))    // an AsyncStream<[UInt8]>, say
  /// ```
  /// Made for sources that have such a sequence anyway: a task hop a chunk costs more than pushing does.
  /// - Parameters:
  ///   - chunks: the chunks. What the sequence throws ends the transfer: a ``DownloadError`` as it is, any other error
  ///     with `.network`. Cancelling the task must end it.
  ///   - discard: ends the request when the bytes are not wanted.
  public init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks, discard: @escaping @Sendable () -> Void = {})
  where Chunks.Element == [UInt8] {
    self.init(discard: discard) { sink in
      for try await chunk in chunks where !chunk.isEmpty { try sink(chunk.span.bytes) }
      // A sequence ends early where its task is cancelled.
      try Task.checkCancellation()
    }
  }

  /// A body that is in memory already.
  public static func bytes(_ bytes: [UInt8]) -> Body {
    Body { sink in
      if !bytes.isEmpty { try sink(bytes.span.bytes) }
    }
  }

  /// No bytes.
  public static var empty: Body { Body { _ in } }

  /// Pushes every chunk through `sink`; call it once.
  ///
  /// `sink` runs on the transport's own thread, and back-pressure is its return: no queue, no task
  /// hop, no copy. Chunks are of any size but never empty.
  /// - Throws: what `sink` threw; ``DownloadError`` when the body ends early; `CancellationError`.
  public func forEachChunk(_ sink: @escaping ChunkSink) async throws {
    try await push(sink)
  }

  /// Pushes every chunk as an array, for sinks that keep the bytes; each chunk is copied. Otherwise the same as
  /// ``forEachChunk(_:)``.
  public func forEachArray(_ sink: @escaping @Sendable ([UInt8]) throws -> Void) async throws {
    try await push { chunk in try sink(chunk.withUnsafeBytes { [UInt8]($0) }) }
  }

  /// Ends the request without reading the body; does nothing once the body has been read.
  public func discard() { abandon() }
}
