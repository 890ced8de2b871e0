extension Transfer {
  /// Copies what another downloader has left into the partial, before the server is asked for the rest.
  ///
  /// The file stays where it is, and the request keeps its head start until the ledger knows that the bytes are
  /// in the partial: dying in between costs nothing but the copy.
  func take(_ headStart: DownloadRequest.HeadStart, into partial: any Partial) async throws {
    if run.read({ $0.checkpoint.ranges.isEmpty }), headStart.count > 0 {
      let count = try await run.located(run.storage.name) {
        let count = try await partial.copy(headStart.file, count: headStart.count)
        try await partial.synchronize()
        return count
      }
      guard let count else {
        throw DownloadError(
          .invalidPipeline, "\(run.storage.name) cannot go on with a file that another downloader has begun",
          stage: run.storage.name)
      }
      run.update { record in
        record.checkpoint = Checkpoint(
          ranges: count > 0 ? ByteRangeSet(0..<count) : ByteRangeSet(),
          // Even a file that seems whole does not count before the server has been asked.
          total: headStart.total.bytes.map { $0 > count } ?? false ? headStart.total : .unknown,
          validator: headStart.validator)
      }
      run.markTail(of: partial)
      book.reset(to: count)
    }
    run.update { $0.request.headStart = nil }
    try await run.save([.link, .checkpoint])
  }
}
