// Every ledger puts whole records through these functions, so that the rules for what they keep exist once.
extension DownloadRecord {
  /// The generation of the record in a ledger into which it is put; see ``LedgerStore/restore(_:at:)``.
  ///
  /// - Parameters:
  ///   - last: The largest generation that the ledger has given.
  ///   - most: The largest one that the record may keep. A damaged number must leave room for those that follow.
  package func generation(after last: Int64, most: Int64 = 1 << 60) -> Int64 {
    generation > last && generation <= most ? generation : last + 1
  }

  /// Returns the record as it is put into a ledger, without its rank.
  ///
  /// - Parameters:
  ///   - generation: Its generation there.
  ///   - isFinished: Whether a download has finished there, for the downloads that it waits for.
  package func restored(
    as generation: Int64, _ isFinished: (DownloadID) throws -> Bool
  ) rethrows -> DownloadRecord {
    var record = self
    record.apply(.leaseLost)
    record.owner = nil
    record.waitsFor = try waitsFor.intersection(request.after).filter { try !isFinished($0) }
    if generation != self.generation {
      record.generation = generation
      record.leavePartial()
    }
    return record
  }

  /// Gives up the bytes of the partial and what steps have made of them.
  private mutating func leavePartial() {
    // The checkpoint and the steps of these are those of the published file.
    guard phase != .finished, !isAsking else { return }
    dropSteps()
    checkpoint = Checkpoint()
    versions = VersionLog(mayChange: versions.mayChange)
  }
}
