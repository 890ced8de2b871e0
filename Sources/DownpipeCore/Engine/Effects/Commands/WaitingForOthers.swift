// Downloads that wait for others from now on.
extension EngineContext {
  /// Adds dependencies to a running download.
  ///
  /// - Parameter check: Whether the run still works.
  /// - Returns: Whether it has to wait for one of them.
  func wait(
    _ id: DownloadID, for others: Set<DownloadID>, if check: @escaping @Sendable () throws -> Void
  ) async throws -> Bool {
    try await mailbox.call(for: []) { _ in
      { state, _ in
        try check()
        return state.wait(id, for: others)
      }
    }
  }
}

extension EngineState {
  /// Those that were met before are looked at again: they may have started again since. Children of an earlier artifact
  /// are let go.
  fileprivate mutating func wait(_ id: DownloadID, for others: Set<DownloadID>) -> NextAction<Bool> {
    let known = slots.runs[id]?.read { $0.request.after } ?? []
    let earlier = known.filter { others.contains($0) || FollowUp.isChild($0, of: id) }
    guard earlier.isEmpty else {
      return update(id, { $0.after.subtract(earlier) }).then { state, _, _ in state.add(others, to: id) }
    }
    return add(others, to: id)
  }

  private mutating func add(_ others: Set<DownloadID>, to id: DownloadID) -> NextAction<Bool> {
    update(id, { $0.after.formUnion(others) }).then { state, _, _ in
      .over(state.slots.runs[id].map { run in run.read { !$0.waitsFor.isEmpty } } ?? false)
    }
  }
}
