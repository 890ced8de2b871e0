// Downloads that follow from a running one.
extension Engine {
  /// Adds descendants of a download, unless they would be too many.
  ///
  /// - Parameter check: Performed in the turn that adds; if it throws, nothing is added.
  func add(
    _ children: [DownloadRequest], following root: DownloadID, atMost maximum: Int,
    if check: @escaping @Sendable () throws -> Void
  ) async throws {
    try checkOpen()
    for child in children { try self.check(child) }
    let ids = children.map(\.id)
    _ = try await add(children, ifKnown: .update) { engine in
      try check()
      let known = try await engine.store.records(of: ids).filter { $0.request.lineage?.root == root }
      let before = try await engine.store.counts(.tag(FollowUp.tag(of: root))).values.reduce(0, +)
      let count = before + Set(ids).subtracting(known.map(\.id)).count
      guard count <= maximum else {
        throw DownloadError(
          .followUpLimit,
          "\(count) downloads would follow from “\(root)”, but at most \(maximum) may: raise the count of "
            + "FollowUpLimits if its manifests are trustworthy")
      }
    }
  }

  /// Adds dependencies to a running download, in a turn.
  ///
  /// Those that were met before are looked at again: they may have started again since. Children of an earlier artifact
  /// are let go.
  /// - Returns: Whether it has to wait for one of them.
  func wait(_ id: DownloadID, for others: Set<DownloadID>) async throws -> Bool {
    let known = state.slots.runs[id]?.read { $0.request.after } ?? []
    let earlier = known.filter { others.contains($0) || FollowUp.isChild($0, of: id) }
    if !earlier.isEmpty { _ = try await updated(id) { $0.after.subtract(earlier) } }
    _ = try await updated(id) { $0.after.formUnion(others) }
    return state.slots.runs[id].map { run in run.read { !$0.waitsFor.isEmpty } } ?? false
  }
}
