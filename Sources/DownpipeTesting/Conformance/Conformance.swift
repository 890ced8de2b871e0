package import DownpipeCore
import Synchronization

/// A rule of a conformance suite that is not checked for a stage, and the reason.
///
/// ```swift
/// try await SourceConformance(source, url: url, content: bytes, excluding: [
///   .init("validator-is-stable", because: "the vendor's server sends a new tag with each reply")
/// ]).run()
/// ```
public struct ConformanceExclusion: Sendable, Hashable {
  /// The name of the rule, as in ``ConformanceFailure/BrokenRule/rule``.
  public let rule: String
  /// Why the rule does not apply to the stage. An empty reason makes the suite fail.
  public let because: String

  /// Excludes a rule for a reason.
  public init(_ rule: String, because: String) {
    self.rule = rule
    self.because = because
  }
}

/// All rules of its contract that a stage breaks.
public struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
  /// A rule that the stage breaks.
  public struct BrokenRule: Sendable, Hashable {
    /// The name of the rule, as in ``ConformanceExclusion/rule``.
    public let rule: String
    /// What the contract requires.
    public let expectation: String
    /// What the stage did instead.
    public let happened: String

    /// Describes a broken rule.
    public init(rule: String, expectation: String, happened: String) {
      self.rule = rule
      self.expectation = expectation
      self.happened = happened
    }
  }

  /// The name of the suite.
  public let suite: String
  /// The broken rules; never empty.
  public let brokenRules: [BrokenRule]
  /// The rules that were not checked because they depend on a broken rule.
  public let unchecked: [String]

  /// Describes a failed run.
  public init(suite: String, brokenRules: [BrokenRule], unchecked: [String] = []) {
    self.suite = suite
    self.brokenRules = brokenRules
    self.unchecked = unchecked
  }

  /// A heading, three lines for each broken rule, and the unchecked rules.
  public var description: String {
    let count = brokenRules.count == 1 ? "1 rule is" : "\(brokenRules.count) rules are"
    var lines = ["\(suite): \(count) broken"]
    lines += brokenRules.map { "  ✗ \($0.rule)\n      expected: \($0.expectation)\n      happened: \($0.happened)" }
    if !unchecked.isEmpty {
      lines.append("  not checked because they depend on broken rules: \(unchecked.joined(separator: ", "))")
    }
    return lines.joined(separator: "\n")
  }
}

/// Collects the broken rules of one suite and throws them together.
///
/// ```swift
/// let report = ConformanceReport("LedgerConformance", excluding: excluding, limit: limit)
/// await report.check("add-is-idempotent", "adding a known id updates it") {
///   …
///   try expect(outcome.isNew == false, "the second add says that the id was new")
/// }
/// try report.finish()
/// ```
package final class ConformanceReport: Sendable {
  private struct State {
    var rules: [String] = []
    var broken: [ConformanceFailure.BrokenRule] = []
    var unchecked: [String] = []
    /// The rules that all later rules depend on.
    var foundations: Set<String> = []
  }

  private let suite: String
  private let exclusions: [ConformanceExclusion]
  private let only: Set<String>?
  private let limit: Duration
  private let time: any TimeSource
  private let state = Mutex(State())

  /// Starts a run. A rule that takes longer than `limit` counts as broken. With `only`, other rules are not checked.
  package init(
    _ suite: String, excluding exclusions: [ConformanceExclusion] = [], only: Set<String>? = nil,
    limit: Duration = .hangLimit,
    time: any TimeSource = SystemTime()
  ) {
    self.suite = suite
    self.exclusions = exclusions
    self.only = only
    self.limit = limit
    self.time = time
  }

  /// Checks one rule, unless it is excluded or does not apply. The rule is broken when `body` throws or does not end
  /// within the limit.
  ///
  /// - Parameters:
  ///   - rule: The name of the rule in kebab case, unique in the suite.
  ///   - expectation: What the contract requires.
  ///   - applies: `false` when the stage does not claim the ability that the rule checks.
  ///   - foundations: Rules that this one depends on. It is not checked when one of them is broken, so that one defect
  ///     is reported once.
  package func check(
    _ rule: String, _ expectation: String, when applies: Bool = true, needs foundations: [String] = [],
    _ body: @escaping @Sendable () async throws -> Void
  ) async {
    state.withLock { $0.rules.append(rule) }
    guard applies, only?.contains(rule) != false, !exclusions.contains(where: { $0.rule == rule }) else { return }
    let isFounded = state.withLock { state in
      let needed = state.foundations.union(foundations)
      let isFounded = !state.broken.contains { needed.contains($0.rule) } && needed.isDisjoint(with: state.unchecked)
      if !isFounded { state.unchecked.append(rule) }
      return isFounded
    }
    guard isFounded else { return }
    do {
      try await withDeadline(limit, time: time, body)
    } catch {
      let happened = (error as? Deviation)?.description ?? "it threw \(String(reflecting: type(of: error))): \(error)"
      state.withLock {
        $0.broken.append(.init(rule: rule, expectation: expectation, happened: happened))
      }
    }
  }

  /// Makes all later rules depend on rules that have been checked.
  package func build(on rules: String...) { state.withLock { $0.foundations.formUnion(rules) } }

  /// Ends the run.
  /// - Throws: ``ConformanceFailure`` when a rule is broken, or an exclusion names no rule or gives no reason.
  package func finish() throws {
    var (rules, broken, unchecked) = state.withLock { ($0.rules, $0.broken, $0.unchecked) }
    for exclusion in exclusions where !rules.contains(exclusion.rule) {
      broken.append(
        .init(
          rule: exclusion.rule, expectation: "an exclusion names a rule of the suite",
          happened: "there is no such rule; there are: \(rules.joined(separator: ", "))"))
    }
    for exclusion in exclusions where exclusion.because.allSatisfy(\.isWhitespace) {
      broken.append(
        .init(
          rule: exclusion.rule, expectation: "an exclusion has a reason", happened: "its reason is empty"))
    }
    if !broken.isEmpty { throw ConformanceFailure(suite: suite, brokenRules: broken, unchecked: unchecked) }
  }
}
