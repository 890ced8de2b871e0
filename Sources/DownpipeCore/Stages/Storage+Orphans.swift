extension Storage {
  /// The partials on disk that are of no use to any download of a ledger, and that no owner holds; `nil` when the
  /// storage cannot list its partials.
  ///
  /// - Throws: ``DownloadError`` with `.permission`, `.storage` or `.ledger`.
  public func orphans(unknownTo store: any LedgerStore) async throws -> [StoredPartial]? {
    // The partials first: one that is begun while the ledger is asked is not in the list.
    guard let partials = try await partials() else { return nil }
    var orphans: [StoredPartial] = []
    for partial in partials where !partial.isInUse {
      if try await !store.wants(partial.key) { orphans.append(partial) }
    }
    return orphans
  }

  /// Removes those of the partials that are still orphans.
  /// - Returns: how many were removed.
  /// - Throws: as ``orphans(unknownTo:)``.
  public func remove(_ orphans: [StoredPartial], unknownTo store: any LedgerStore) async throws -> Int {
    var count = 0
    for orphan in orphans {
      guard try await !store.wants(orphan.key) else { continue }
      do {
        try await removePartial(orphan.key)
        count += 1
      } catch let error as DownloadError where error.code == .inUse {
        // Another owner's after all.
      }
    }
    return count
  }
}

extension LedgerStore {
  /// Whether a download of the ledger goes on with the partial.
  fileprivate func wants(_ key: PartialKey) async throws -> Bool {
    guard let record = try await record(key.id), record.generation == key.generation else { return false }
    return record.phase != .finished && record.phase != .cancelled
  }
}
