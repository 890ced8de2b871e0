#if Archive
  import DownpipeCore
  import DownpipePOSIX

  /// Decompresses a download while its bytes arrive, into the workspace.
  ///
  /// It does what its step does, on the same blocks. If it fails, the step reads the file, and reports why.
  final class DecompressFollower: TransferFollower {
    private let output: FollowerOutput
    private let pulled: PulledTransfer

    /// - Parameter announced: The announced size of the file; `nil` if it is unknown, and the ratio then allows no more
    ///   than ``Decompress/freeOutput``.
    init(_ step: Decompress, in workspace: String, announced: Int64?, _ place: FollowerPlaces.Place) {
      let output = FollowerOutput(in: workspace, folder: Decompress.folder)
      self.output = output
      pulled = PulledTransfer(place) { source in
        let decoded = try step.decoded(source, step.limit(forInput: announced ?? 0, inMemory: false))
        var byteCount: Int64 = 0
        try step.forEachBlock(of: decoded) { block in
          byteCount += Int64(block.count)
          try source.checkRatio(ofOutput: byteCount, step.maximumRatio, free: Decompress.freeOutput)
          try output.write(block.bytes)
        }
      }
    }

    deinit { discard() }

    func take(_ bytes: RawSpan) throws { try pulled.put(bytes) }

    /// Ends the reading, and gives the output its name.
    ///
    /// - Returns: The path and the size of the output; `nil` if the step has to read the file.
    /// - Throws: `DownloadError` if the output cannot be completed; `CancellationError`.
    func finish(named name: String, durability: Durability) async throws -> (path: String, size: Int64)? {
      guard try await pulled.finishedWithoutError() else { return nil }
      return try output.commit(as: name, durability: durability)
    }

    func discard() {
      pulled.cancel()
      output.discard()
    }
  }
#endif
