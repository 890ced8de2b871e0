public import DownpipeCore

/// A gate that is open for the downloads of users who are logged in.
///
/// Logging out suspends the user's running downloads and keeps their bytes; logging in resumes them. A download belongs
/// to the users whose tags it has.
///
/// ```swift
/// let sessions = SessionGate(tagPrefix: "user:")
/// let downloader = try await Downloader { HTTPSource(); FileStore("~/Downloads"); sessions }
/// try await downloader.add(DownloadRequest("https://example.org/film.mkv", tags: ["user:anna"]))
/// sessions.logIn("user:anna")        // it starts
/// sessions.logOut("user:anna")       // it is suspended: “SessionGate: user:anna is logged out”
/// ```
/// All users are logged out when the gate is created, so no download of an earlier launch continues before its user has
/// logged in. Copies of a gate share its state, and can be in several pipelines. All members can be used from any thread.
public struct SessionGate: Gate {
  /// The users who are logged in.
  private struct Sessions: Equatable {
    var includesAll = false
    var tags: Set<String> = []
  }

  /// The name in messages and in the printed pipeline; `SessionGate` by default.
  public let name: String
  /// Identifies the gate in its pipeline; the name by default.
  public let id: String
  private let tagPrefix: String?
  private let sessions: SharedState<Sessions>

  /// Creates a gate without users that are logged in.
  ///
  /// - Parameters:
  ///   - name: The name in messages.
  ///   - id: Identifies the gate in its pipeline; the name by default.
  ///   - tagPrefix: The beginning of the tags of users. The gate is open for downloads without such a tag. `nil` to
  ///     apply the gate to all downloads.
  public init(_ name: String = "SessionGate", id: String? = nil, tagPrefix: String? = nil) {
    self.name = name
    self.id = id ?? name
    self.tagPrefix = tagPrefix
    sessions = SharedState(Sessions())
  }

  /// Opens the gate.
  ///
  /// - Parameter tag: The tag of the user. The gate opens for the downloads that have it, also if they have the tags of
  ///   other users. `nil` opens the gate for all downloads, until ``logOut(_:)`` without a tag.
  public func logIn(_ tag: String? = nil) {
    sessions.change { if let tag { $0.tags.insert(tag) } else { $0.includesAll = true } }
  }

  /// Closes the gate: running downloads are suspended at a checkpoint.
  ///
  /// - Parameter tag: The tag of the user; `nil` to log out all users.
  public func logOut(_ tag: String? = nil) {
    sessions.change { if let tag { $0.tags.remove(tag) } else { $0 = Sessions() } }
  }

  /// Returns whether a user is logged in.
  ///
  /// - Parameter tag: The tag of the user; `nil` for whether the gate is open for all downloads.
  public func isLoggedIn(_ tag: String? = nil) -> Bool {
    let sessions = sessions.value
    return sessions.includesAll || tag.map(sessions.tags.contains) ?? false
  }

  /// The tags of users.
  public var summary: String { tagPrefix.map { "for downloads with tags \($0)…" } ?? "" }

  /// Publishes the current rule and then each change, until the task is cancelled.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    for await _ in sessions.changes() { publish(rule(for: sessions.value)) }
    try Task.checkCancellation()
  }

  private func rule(for sessions: Sessions) -> GateRule {
    if sessions.includesAll { return .open }
    guard let tagPrefix else {
      if sessions.tags.isEmpty { return .closed("\(name): no user is logged in") }
      return .each { [name] candidate in
        candidate.tags.isDisjoint(with: sessions.tags) ? .closed("\(name): its user is logged out") : .open
      }
    }
    return .each { [name] candidate in
      let users = candidate.tags.filter { $0.hasPrefix(tagPrefix) }
      guard !users.isEmpty, users.isDisjoint(with: sessions.tags) else { return .open }
      let list = users.sorted().joined(separator: " and ")
      return .closed("\(name): \(list) \(users.count == 1 ? "is" : "are") logged out")
    }
  }
}
