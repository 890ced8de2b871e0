#if SQLite
  import DownpipeCore
  import DownpipeTesting
  import Foundation

  /// A ``FakeSource`` that pushes its bytes at the ``Pace`` of the run: a checkpoint after each chunk.
  struct PacedSource: Source, SourceSession {
    let bytes: [UInt8]
    /// The bytes on the server until the first connection breaks.
    let former: [UInt8]?
    /// The bytes of each chunk, and of each checkpoint.
    let chunkSize: Int
    /// The bytes after which the first connection breaks.
    let cut: Int?
    let pace: Pace
    private let server: FakeSource
    private let decoder: (any PostProcessor<File, File>)?

    /// - Parameters:
    ///   - former: The bytes on the server until the first connection breaks, with an entity tag of their own. Such a
    ///     server has no ranges.
    ///   - decoder: The step for the content coding of the bytes; `nil` without a coding.
    init(
      _ bytes: [UInt8], former: ArraySlice<UInt8>? = nil, chunkSize: Int, cut: Int?, pace: Pace,
      decoder: (any PostProcessor<File, File>)? = nil
    ) {
      self.bytes = bytes
      self.former = former.map { Array($0) }
      self.decoder = decoder
      self.chunkSize = chunkSize
      self.cut = cut
      self.pace = pace
      var script = FakeSource.Script(bytes)
      if decoder != nil { script.contentCoding = "gzip" }
      if former != nil { script.honoursRanges = false }
      server = FakeSource(everyURL: script)
    }

    func decoder(for coding: String) -> (any PostProcessor<File, File>)? { decoder }

    var requests: [SourceRequest] { server.requests }

    func accepts(_ url: URL) -> Bool { true }

    func open(_ request: SourceRequest) async throws -> SourceReply {
      var reply = try await server.open(request)
      reply.validator?.lastModified = Date(timeIntervalSince1970: 1_000_000_000)
      let cut = server.requests.count == 1 ? cut : nil
      var bytes = bytes
      if cut != nil, let former {
        bytes = former
        reply.validator?.entityTag = EntityTag("former")
      }
      let body: ArraySlice<UInt8>
      switch reply.coverage {
      case .whole: body = bytes[...]
      case .range(let range, _): body = bytes[Int(range.lowerBound)..<Int(range.upperBound)]
      default: body = []
      }
      reply.body = Body { sink in
        var sent = 0
        while sent < body.count {
          try Task.checkCancellation()
          let end = min(body.count, sent + chunkSize)
          try sink(body[(body.startIndex + sent)..<(body.startIndex + end)].span.bytes)
          let isWhole = end - sent == chunkSize
          sent = end
          // Short bodies and short remainders have no checkpoint.
          if body.count > chunkSize, isWhole {
            await pace.checkpoint(at: Int64(body.startIndex + sent), every: Int64(chunkSize))
          }
          if let cut, sent >= cut { throw DownloadError(.network, "the cable was cut") }
        }
      }
      return reply
    }
  }
#endif
