package import DownpipeCore
import Synchronization

/// A rule of a conformance suite that is not checked for one stage, and why not.
///
/// ```swift
/// try await SourceConformance(source, url: url, content: bytes, excluding: [
///   .init("validator-is-stable", because: "the vendor's server sends a new tag with each answer")
/// ]).run()
/// ```
public struct ConformanceExclusion: Sendable, Hashable {
  /// The rule's name, as ``ConformanceFailure`` prints it.
  public let rule: String
  /// Why the stage need not keep it; never empty.
  public let because: String

  /// Leaves out a rule.
  public init(_ rule: String, because: String) {
    self.rule = rule
    self.because = because
  }
}

/// The rules of its contract that a stage breaks: every one that was found, not only the first.
public struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
  /// One broken rule.
  public struct BrokenRule: Sendable, Hashable {
    /// The rule's name, as ``ConformanceExclusion`` takes it.
    public let rule: String
    /// The sentence of the contract that is broken.
    public let expectation: String
    /// What happened instead.
    public let happened: String

    /// Describes a broken rule.
    public init(rule: String, expectation: String, happened: String) {
      self.rule = rule
      self.expectation = expectation
      self.happened = happened
    }
  }

  /// The suite that found them.
  public let suite: String
  /// What is broken; never empty.
  public let brokenRules: [BrokenRule]
  /// The rules that were not checked, because they build on a broken one and would only tell the same again.
  public let unchecked: [String]

  /// Describes a failed run.
  public init(suite: String, brokenRules: [BrokenRule], unchecked: [String] = []) {
    self.suite = suite
    self.brokenRules = brokenRules
    self.unchecked = unchecked
  }

  /// A heading, then three lines for each broken rule, and the rules that could not be checked.
  public var description: String {
    let count = brokenRules.count == 1 ? "1 rule is" : "\(brokenRules.count) rules are"
    var lines = ["\(suite): \(count) broken"]
    lines += brokenRules.map { "  ✗ \($0.rule)\n      expected: \($0.expectation)\n      happened: \($0.happened)" }
    if !unchecked.isEmpty { lines.append("  not checked before that is mended: \(unchecked.joined(separator: ", "))") }
    return lines.joined(separator: "\n")
  }
}

/// Collects what the rules of one suite find, and throws it all at once.
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
    /// The rules that all that follow build on.
    var foundations: Set<String> = []
  }

  private let suite: String
  private let exclusions: [ConformanceExclusion]
  private let limit: Duration
  private let time: any TimeSource
  private let state = Mutex(State())

  /// Begins a run; `limit` is the longest that one rule may take before it counts as broken.
  package init(
    _ suite: String, excluding exclusions: [ConformanceExclusion] = [], limit: Duration = .seconds(10),
    time: any TimeSource = SystemTime()
  ) {
    self.suite = suite
    self.exclusions = exclusions
    self.limit = limit
    self.time = time
  }

  /// Checks one rule, unless it is excluded or does not apply: whatever `body` throws breaks it, and
  /// so does a body that does not end within the limit.
  ///
  /// - Parameters:
  ///   - rule: its name in kebab case, unique in the suite.
  ///   - expectation: the sentence of the contract.
  ///   - applies: false when the stage does not claim the ability that the rule is about.
  ///   - foundations: rules without which this one says nothing: it is not checked when one of them is broken, so that
  ///     one mistake is told, and waited for, once.
  package func check(
    _ rule: String, _ expectation: String, when applies: Bool = true, needs foundations: [String] = [],
    _ body: @escaping @Sendable () async throws -> Void
  ) async {
    state.withLock { $0.rules.append(rule) }
    guard applies, !exclusions.contains(where: { $0.rule == rule }) else { return }
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

  /// Says that all rules that are checked from now on build on some that have been checked.
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
          rule: exclusion.rule, expectation: "an exclusion says why", happened: "its reason is empty"))
    }
    if !broken.isEmpty { throw ConformanceFailure(suite: suite, brokenRules: broken, unchecked: unchecked) }
  }
}

/// What a stage did instead of what its contract says.
package struct Deviation: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

/// Throws a ``Deviation`` unless the condition holds.
package func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
  if !condition { throw Deviation(otherwise()) }
}

/// Throws a ``Deviation`` unless both values are equal.
package func expectEqual<Value: Equatable>(_ found: Value, _ wanted: Value, _ what: @autoclosure () -> String) throws {
  if found != wanted { throw Deviation("\(what()) is \(found) instead of \(wanted)") }
}

/// Throws a ``Deviation`` unless there is a value.
package func expectValue<Value>(_ value: Value?, _ otherwise: @autoclosure () -> String) throws -> Value {
  guard let value else { throw Deviation(otherwise()) }
  return value
}

/// Throws a ``Deviation`` unless the body throws a ``DownloadError`` with one of the codes (any code when empty).
@discardableResult
package func expectError(
  _ codes: DownloadError.Code..., when what: String, _ body: () async throws -> Void
) async throws -> DownloadError {
  do {
    try await body()
  } catch let error as DownloadError {
    try expect(
      codes.isEmpty || codes.contains(error.code),
      "\(what): it threw \(error), whose code should be \(codes.map(\.rawValue).joined(separator: " or "))")
    return error
  } catch {
    throw Deviation("\(what): it threw \(String(reflecting: type(of: error))) instead of a DownloadError: \(error)")
  }
  throw Deviation("\(what): nothing was thrown")
}
