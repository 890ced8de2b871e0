import DownpipeCore
import DownpipeTesting
import Foundation

/// A wrapped source with changed behavior.
struct AlteredSource: Source, SourceSession {
  typealias Open = @Sendable (SourceRequest) async throws -> SourceReply

  let base: any Source & SourceSession
  var isAccepted: @Sendable (URL) -> Bool
  var onStart: @Sendable () async throws -> Void = {}
  var onStop: @Sendable () async -> Void = {}
  private let opening: @Sendable (SourceRequest, @escaping Open) async throws -> SourceReply
  private let pushing: @Sendable (Body, @escaping ChunkSink) async throws -> Void

  init(
    _ base: any Source & SourceSession,
    open: @escaping @Sendable (SourceRequest, @escaping Open) async throws -> SourceReply = { try await $1($0) },
    body: @escaping @Sendable (Body, @escaping ChunkSink) async throws -> Void = { try await $0.forEachChunk($1) }
  ) {
    self.base = base
    isAccepted = { base.accepts($0) }
    opening = open
    pushing = body
  }

  func accepts(_ url: URL) -> Bool { isAccepted(url) }

  func decoder(for coding: String) -> (any PostProcessor<File, File>)? { base.decoder(for: coding) }

  func start(in context: SourceContext) async throws -> any SourceSession {
    try await onStart()
    return self
  }

  func stop() async { await onStop() }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    var reply = try await opening(request) { try await base.open($0) }
    let body = reply.body
    // However the closure pushes the bytes, the end is that of the wrapped body.
    reply.body = .pushing(file: body.file, discard: { body.discard() }) { sink in
      let end = Watched(Body.End())
      let watched = Body.pushing { sink in
        let known = try await body.forEachChunk(sink)
        end.update { $0 = known }
        return known
      }
      try await pushing(watched, sink)
      return end.value
    }
    return reply
  }
}
