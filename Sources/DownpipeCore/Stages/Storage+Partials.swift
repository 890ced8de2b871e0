extension Storage {
  /// Removes partials, also those after one that cannot be removed.
  /// - Throws: The first failure, after all others have been removed.
  func removePartials(_ keys: [PartialKey]) async throws {
    var failure: (any Error)?
    for key in keys { do { try await removePartial(key) } catch { failure = failure ?? error } }
    if let failure { throw failure }
  }
}
