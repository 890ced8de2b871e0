/// Open, or closed with a reason, for each download: may it use the network now?
///
/// A gate reports what the system says and never guesses. It publishes a new rule whenever its
/// answer may have changed; closing suspends running transfers (their bytes stay), opening lets them go on.
///
/// ```swift
/// struct OfficeHours: Gate {
///   func watch(_ publish: @Sendable (GateRule) -> Void) async throws {
///     publish(.closed("OfficeHours: it is night"))
///     …
///   }
/// }
/// ```
public protocol Gate: Stage {
  /// Watches for as long as the downloader runs, publishing the rule at once and after each change.
  ///
  /// Until the first rule the gate counts as closed. Returning leaves the last rule in force;
  /// throwing opens the gate, since it no longer knows. Cancelling the task ends the watch. A gate may be watched
  /// several times, also at the same time: in each downloader whose pipeline it is part of.
  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws
}

extension Gate {
  /// Adds the gate to those that must all be open.
  public func contribute(to parts: inout PipelineParts) { parts.gates.append(self) }
}

/// What a gate says until it says something else.
public struct GateRule: Sendable {
  /// For one download.
  public enum Verdict: Sendable, Hashable {
    /// It may use the network.
    case open
    /// It may not, because.
    case closed(String)
  }

  package enum Extent: Sendable {
    case all(Verdict)
    case each(@Sendable (Candidate) -> Verdict)
  }

  package let extent: Extent

  /// Open for every download.
  public static var open: GateRule { GateRule(extent: .all(.open)) }

  /// Closed for every download. Say who says so and what it saw: `"WiFiOnly: the default route is over eth0"`.
  public static func closed(_ reason: String) -> GateRule { GateRule(extent: .all(.closed(reason))) }

  /// Decided for each download by a pure and cheap function.
  public static func each(_ verdict: @escaping @Sendable (Candidate) -> Verdict) -> GateRule {
    GateRule(extent: .each(verdict))
  }

  /// Whether it is known to say the same as another one.
  func isSame(as other: GateRule) -> Bool {
    if case .all(let mine) = extent, case .all(let theirs) = other.extent { mine == theirs } else { false }
  }

  /// The verdict for one download.
  public func verdict(for candidate: Candidate) -> Verdict {
    switch extent {
    case .all(let verdict): verdict
    case .each(let verdict): verdict(candidate)
    }
  }
}
