/// The deletions that go on, and the files of runs that have ended meanwhile: the same file may be published, or found, at the
/// place of one that is deleted, or in a folder that is.
final class Deletions: Sendable {
  private struct State: Sendable {
    /// The first numbers of deletions.
    var numbers: Set<Int64> = []
    /// Paths that runs have, and the folders above them.
    var kept: Set<String> = []
    /// How often each path is deleted at the moment.
    var deleting: [String: Int] = [:]
  }

  private let state = Monitor(State())

  /// The number of what ended processes have left: it comes after those of all commands.
  static let ofOthers = Int64.max

  /// The first number of all.
  var first: Int64 { state.read { $0.numbers.min() ?? Self.ofOthers } }

  /// - Returns: Whether none with this number goes on.
  @discardableResult
  func begin(_ number: Int64) -> Bool { state.update { $0.numbers.insert(number).inserted } }

  func end(_ number: Int64) {
    state.update { state in
      state.numbers.remove(number)
      if state.numbers.isEmpty { state.kept = [] }
    }
  }

  /// Keeps a file from now on.
  /// - Returns: Whether it may have been deleted a moment ago.
  func keep(_ path: String) async -> Bool {
    guard state.read({ !$0.numbers.isEmpty }) else { return false }
    let paths = path.withFolders
    state.update { $0.kept.formUnion(paths) }
    await state.waitThroughCancellation { state in paths.allSatisfy { state.deleting[$0] == nil } }
    return true
  }

  /// Those of the files that are kept.
  func kept(of files: [StoredArtifact]) -> [String] {
    state.read { state in state.kept.isEmpty ? [] : files.compactMap(\.path).filter(state.kept.contains) }
  }

  /// Keeps files no longer, because their downloads have been removed.
  func drop(_ paths: [String]) {
    if !paths.isEmpty { state.update { $0.kept.subtract(paths) } }
  }

  /// Deletes a file, unless it is kept.
  func delete(_ path: String?, _ body: () async throws -> Void) async throws {
    guard let path else { return try await body() }
    let mayDelete = state.update { state in
      guard !state.kept.contains(path) else { return false }
      state.deleting[path, default: 0] += 1
      return true
    }
    guard mayDelete else { return }
    defer { state.update { state in state.deleting[path] = state.deleting[path].flatMap { $0 > 1 ? $0 - 1 : nil } } }
    try await body()
  }
}

extension String {
  /// A path, and those of the folders above it.
  var withFolders: [String] {
    [self] + indices.reversed().compactMap { self[$0] == "/" && $0 > startIndex ? String(self[..<$0]) : nil }
  }
}
