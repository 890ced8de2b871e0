public import DownpipeCore

/// Downloads to which a gate does not apply.
struct Exemption: Sendable {
  /// Follows `unless` in the printed pipeline; empty for none.
  let summary: String
  private let exempts: (@Sendable (Candidate) -> Bool)?

  init(_ intents: [Intent]) {
    summary = intents.map(\.rawValue).joined(separator: " or ")
    if intents.isEmpty {
      exempts = nil
    } else {
      let intents = Set(intents)
      exempts = { candidate in intents.contains(candidate.intent) }
    }
  }

  init(_ exempts: @escaping @Sendable (Candidate) -> Bool) {
    summary = "a closure exempts the download"
    self.exempts = exempts
  }

  func applies(to candidate: Candidate) -> Bool { exempts?(candidate) ?? false }

  func apply(to rule: GateRule) -> GateRule {
    guard let exempts else { return rule }
    if case .all(.open) = rule.extent { return rule }
    return .each { exempts($0) ? .open : rule.verdict(for: $0) }
  }

  /// The settings of a gate, joined for the printed pipeline.
  func summary(beside settings: String = "") -> String {
    [settings, summary.isEmpty ? "" : "unless \(summary)"].filter { !$0.isEmpty }.joined(separator: ", ")
  }
}

extension Gate {
  /// Returns a gate that is open for downloads of the given intents, and asks this gate for the others.
  ///
  /// ```swift
  /// let gate = TimeWindow(from: TimeOfDay(hour: 22), to: TimeOfDay(hour: 6)).unless(.userInitiated)
  /// let request = try DownloadRequest("https://example.org/next", intent: .prefetch)  // waits for the night
  /// ```
  /// The default intent of a request is `.userInitiated`: with it among the intents, only requests that state another one
  /// are held back.
  ///
  /// It keeps the gate's name and ``/DownpipeCore/Stage/id``, so that it can be replaced by the id.
  public func unless(_ intents: Intent...) -> some Gate { ExemptingGate(base: self, exemption: Exemption(intents)) }

  /// Returns a gate that is open for the downloads that a closure exempts, and asks this gate for the others.
  ///
  /// - Parameter exempts: Whether the gate does not apply to the download. It must be pure and cheap, and can be called
  ///   on any thread.
  public func unless(_ exempts: @escaping @Sendable (Candidate) -> Bool) -> some Gate {
    ExemptingGate(base: self, exemption: Exemption(exempts))
  }
}

private struct ExemptingGate: Gate {
  let base: any Gate
  let exemption: Exemption

  var name: String { base.name }
  var id: String { base.id }
  var summary: String { exemption.summary(beside: base.summary) }

  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    let exemption = exemption
    try await base.watch { publish(exemption.apply(to: $0)) }
  }

  func room(for candidate: Candidate) async throws -> Int64? {
    exemption.applies(to: candidate) ? nil : try await base.room(for: candidate)
  }
}
