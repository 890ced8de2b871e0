/// The deletions that go on, and the files of runs that have ended meanwhile: the same file may be published, or found, at the
/// place of one that is deleted.
final class Deletions: Sendable {
  private struct State: Sendable {
    /// The first numbers of deletions.
    var numbers: Set<Int64> = []
    var kept: Set<String> = []
    /// What is deleted at the moment.
    var deleting: Set<String> = []
  }

  private let state = Monitor(State())

  /// The first number of all.
  var first: Int64? { state.read { $0.numbers.min() } }

  func begin(_ number: Int64) { state.update { _ = $0.numbers.insert(number) } }

  func end(_ number: Int64) {
    state.update { state in
      state.numbers.remove(number)
      if state.numbers.isEmpty { state.kept = [] }
    }
  }

  /// Keeps a file from now on.
  /// - Returns: Whether it may have been deleted a moment ago.
  func keep(_ path: String) async -> Bool {
    let goesOn = state.update { state in
      guard !state.numbers.isEmpty else { return false }
      state.kept.insert(path)
      return true
    }
    if goesOn { await state.waitThroughCancellation { !$0.deleting.contains(path) } }
    return goesOn
  }

  /// Keeps files no longer, because their downloads are removed.
  func drop(_ files: [StoredArtifact]) {
    guard state.read({ !$0.kept.isEmpty }) else { return }
    state.update { state in for path in files.compactMap(\.path) { state.kept.remove(path) } }
  }

  /// Deletes a file, unless it is kept.
  func delete(_ path: String?, _ body: () async throws -> Void) async throws {
    guard let path else { return try await body() }
    let mayDelete = state.update { state in
      guard !state.kept.contains(path) else { return false }
      state.deleting.insert(path)
      return true
    }
    guard mayDelete else { return }
    defer { state.update { _ = $0.deleting.remove(path) } }
    try await body()
  }
}
