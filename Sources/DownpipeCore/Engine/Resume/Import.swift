extension Transfer {
  /// Imports the partial of another downloader: copies its bytes into the partial before the rest is requested.
  ///
  /// The foreign file is not changed, and the request keeps its head start until a checkpoint with the bytes is
  /// committed. If the process dies before that, only the copy is repeated.
  func take(_ headStart: DownloadRequest.HeadStart, into partial: any Partial) async throws {
    if run.read({ $0.checkpoint.ranges.isEmpty }), headStart.count > 0 {
      let count = try await run.located(run.storageName) {
        let count = try await partial.copy(headStart.file, count: headStart.count)
        try await partial.synchronize()
        return count
      }
      guard let count else {
        throw DownloadError(
          .invalidPipeline, "\(run.storageName) cannot import the partial of another downloader",
          stage: run.storageName)
      }
      run.update { record in
        record.checkpoint = Checkpoint(
          ranges: count > 0 ? ByteRangeSet(0..<count) : ByteRangeSet(),
          // Even a file that seems complete has to be confirmed by the server first.
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
