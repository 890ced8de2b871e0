/// A stage that decides for each download whether it may use the network now, and gives a reason when it may not.
///
/// A gate reports what the system says and never guesses. It publishes a new rule whenever its verdict may have
/// changed. Closing stops running downloads, also in their steps, and keeps their bytes and completed steps; opening lets
/// them go on.
///
/// ```swift
/// struct Switch: Gate {
///   let positions: AsyncStream<Bool>
///
///   func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
///     publish(.closed("Switch: it was not switched on yet"))
///     for await isOn in positions { publish(isOn ? .open : .closed("Switch: it is off")) }
///   }
/// }
/// ```
public protocol Gate: Stage {
  /// Watches the system while the downloader runs, and publishes the rule at once and after each change.
  ///
  /// The gate counts as closed until the first rule. When the function returns, the last rule stays in force. When it
  /// throws, the gate opens, because its state is unknown. Cancelling the task ends the watch. Several downloaders may
  /// watch the same gate, also at the same time.
  ///
  /// A function that returns before the first rule is a defect of the gate, which would close it for ever: downloads that
  /// start then fail with `.invalidPipeline` and the gate's name, until the gate is replaced or removed.
  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws

  /// Returns the number of bytes that the gate leaves for a download, for gates that protect a disk; `nil` for others.
  ///
  /// A download whose size is known starts only if its missing bytes fit, beside those of the running downloads. It
  /// waits for disk space otherwise. The size is known if the request has an
  /// ``DownloadRequest/expectedSize`` or the server has stated it; less than 1 MiB always fits.
  func room(for candidate: Candidate) async throws -> Int64?
}

extension Gate {
  /// The default: `nil`, the gate protects no disk.
  public func room(for candidate: Candidate) async throws -> Int64? { nil }
  /// Adds the gate to the pipeline's gates, which must all be open.
  public func contribute(to parts: inout PipelineParts) { parts.gates.append(self) }
}

/// The verdicts of a gate, valid until it publishes another rule.
public struct GateRule: Sendable {
  /// The verdict for one download.
  public enum Verdict: Sendable, Hashable {
    /// The download may use the network.
    case open
    /// The download may not use the network, for the given reason.
    case closed(String)
  }

  package enum Extent: Sendable {
    case all(Verdict)
    case each(@Sendable (Candidate) -> Verdict)
  }

  package let extent: Extent
  /// Why there is no rule; the runs that start fail with it. No gate publishes one.
  private(set) var failure: DownloadError?

  private init(extent: Extent) { self.extent = extent }

  /// A rule that is open for every download.
  public static var open: GateRule { GateRule(extent: .all(.open)) }

  /// Returns a rule that is closed for every download.
  ///
  /// - Parameter reason: The gate's name and what it has seen, such as `"WiFiOnly: the default route is over eth0"`.
  public static func closed(_ reason: String) -> GateRule { GateRule(extent: .all(.closed(reason))) }

  /// Returns a rule that decides for each download by a function, which must be pure and cheap. The size of its
  /// candidates is unknown, because a closed gate holds back all downloads that are equal but for their sizes.
  public static func each(_ verdict: @escaping @Sendable (Candidate) -> Verdict) -> GateRule {
    GateRule(extent: .each(verdict))
  }

  /// The rule of a gate whose watch has ended before the first rule: downloads start, and fail.
  static func missing(from gate: any Gate) -> GateRule {
    var rule = GateRule.open
    rule.failure = DownloadError(
      .invalidPipeline,
      "\(gate.name) has ended its watch without a rule, so that no download could ever start: let watch(_:) publish a rule "
        + "before it returns, or remove the gate", stage: gate.name)
    return rule
  }

  /// Whether both rules are known to give the same verdicts. Rules that decide for each download cannot be compared.
  func isSame(as other: GateRule) -> Bool {
    guard case .all(let mine) = extent, case .all(let theirs) = other.extent else { return false }
    return mine == theirs && failure == other.failure
  }

  /// Returns the verdict for one download. It does not depend on the size.
  public func verdict(for candidate: Candidate) -> Verdict {
    switch extent {
    case .all(let verdict): verdict
    case .each(let verdict): verdict(candidate.withoutSize)
    }
  }
}
