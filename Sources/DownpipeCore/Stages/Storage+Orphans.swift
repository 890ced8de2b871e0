extension Storage {
  /// Returns the partials that no download of the ledger needs and that no owner holds; `nil` when the storage cannot
  /// list its partials.
  ///
  /// - Throws: ``DownloadError`` with `.permission`, `.storage` or `.ledger`.
  @_spi(Ledger) public func orphans(unknownTo store: any LedgerStore) async throws -> [StoredPartial]? {
    // List the partials first, so that the list has no partial that is created while the ledger is read.
    guard let partials = try await partials() else { return nil }
    var orphans: [StoredPartial] = []
    for partial in partials where !partial.isInUse {
      if try await !store.wants(partial.key) { orphans.append(partial) }
    }
    return orphans
  }

  /// Removes those of the given partials that are still orphans.
  /// - Returns: The number of removed partials.
  /// - Throws: ``DownloadError`` with `.permission`, `.storage` or `.ledger`.
  @_spi(Ledger) public func remove(_ orphans: [StoredPartial], unknownTo store: any LedgerStore) async throws -> Int {
    var count = 0
    for orphan in orphans {
      guard try await !store.wants(orphan.key) else { continue }
      do {
        try await removePartial(orphan.key)
        count += 1
      } catch let error as DownloadError where error.code == .inUse {
        // Another owner has begun to use it in the meantime.
      }
    }
    return count
  }
}

extension LedgerStore {
  /// Whether a download of the ledger still needs the partial.
  fileprivate func wants(_ key: PartialKey) async throws -> Bool {
    guard let record = try await record(key.id), record.partialKeys.contains(key) else { return false }
    return record.phase != .finished && record.phase != .cancelled
  }
}
