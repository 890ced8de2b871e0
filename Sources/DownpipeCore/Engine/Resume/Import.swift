extension Transfer {
  /// Imports the partial of another downloader: copies its bytes into the partial before the rest is requested.
  ///
  /// The foreign file is not changed, and the request keeps its head start until a checkpoint with the bytes is
  /// committed. If the process dies before that, only the copy is repeated.
  func take(_ headStart: DownloadRequest.HeadStart, into partial: any Partial) async throws {
    if run.read({ $0.checkpoint.ranges.isEmpty }), headStart.count > 0 {
      let count: Int64?
      do {
        count = try await run.located(run.storageName) {
          let count = try await partial.copy(headStart.file, count: headStart.count)
          try await partial.synchronize()
          return count
        }
      } catch let error as DownloadError where error.code == .invalidRequest {
        // The file is gone, or never was one: the transfer begins at byte 0.
        run.announce(.refused(error))
        return try await forgetHeadStart()
      }
      guard let count else {
        let error = DownloadError(
          .invalidPipeline, "\(run.storageName) cannot import the partial of another downloader",
          stage: run.storageName)
        // A repair does without: the file is fetched as a whole.
        guard headStart.proof == .digests else { throw error }
        run.announce(.refused(error))
        return try await forgetHeadStart()
      }
      let isProved = isProved(headStart, count)
      run.update { record in
        // The foreign file stays as it is: if the server has another one, nothing is lost.
        record.versions.mayChange = true
        record.checkpoint = Checkpoint(
          ranges: count > 0 ? ByteRangeSet(0..<count) : ByteRangeSet(),
          // Even a file that seems complete has to be confirmed first, by the server if no digest does it.
          total: headStart.total.bytes.map { $0 > count || (isProved && $0 == count) } ?? false
            ? headStart.total : .unknown,
          validator: headStart.validator, resource: headStart.known?.resource, name: headStart.known?.name,
          mediaType: headStart.known?.mediaType, digests: headStart.known?.digests ?? [],
          freshUntil: headStart.known?.freshUntil)
      }
      run.markTail(of: partial)
      book.reset(to: count)
    }
    // The bytes first: if the process dies in between, they are not copied again.
    try await run.save([.checkpoint])
    try await forgetHeadStart()
  }

  /// Whether the digests of the request prove the imported bytes as a whole file.
  private func isProved(_ headStart: DownloadRequest.HeadStart, _ count: Int64) -> Bool {
    run.read { record in
      let request = record.request
      return headStart.proof == .digests && request.expectsDigest
        && request.steps.verifiesDigests(of: run.pipeline.steps)
        && (request.expectedSize == .unknown || request.expectedSize == .known(count))
        && request.pieces?.fit(count) != false
    }
  }

  private func forgetHeadStart() async throws {
    let (id, generation) = (run.id, run.key.generation)
    // Not by a save of the run's link, because the URL may have been changed meanwhile.
    _ = try await run.located(run.context.ledgerName) {
      try await run.context.store.update(id, at: run.context.time.date) { saved in
        if saved.generation == generation { saved.request.headStart = nil }
      }
    }
    run.update { $0.request.headStart = nil }
  }
}
