import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct RetryTests {
  private static func failure(
    _ error: DownloadError, consecutive: Int = 1, random: Double = 0, now: Date = Date(timeIntervalSince1970: 1_000)
  ) -> Failure {
    Failure(error: error, consecutive: consecutive, attempts: consecutive, random: random, now: now)
  }

  private static let network = DownloadError(.network, "the connection broke")

  @Test func defaultsAreFiveExponentialAttempts() {
    #expect(Retry() == Retry(.exponential(attempts: 5)))
    #expect(Retry() == Retry(.exponential(attempts: 5, base: .seconds(1), cap: .seconds(60)), table: .standard))
    #expect(Retry().name == "Retry")
    #expect(Retry().summary == "up to 5 attempts, waiting at most 1 s, doubling to 60 s")
  }

  @Test(arguments: [(1, true), (2, true), (4, true), (5, false), (6, false), (Int.max, false)])
  func attemptsAreCountedInARow(consecutive: Int, again: Bool) {
    let decision = Retry().decide(Self.failure(Self.network, consecutive: consecutive))
    #expect(decision == (again ? .resume(after: .zero) : .giveUp))
  }

  @Test func progressGivesTheAttemptsBack() {
    // The thousandth failure, but the first since the last progress.
    let failure = Failure(error: Self.network, consecutive: 1, attempts: 1_000, random: 0)
    #expect(Retry().decide(failure) == .resume(after: .zero))
  }

  @Test func neverMeansOneAttempt() {
    #expect(Retry(.never).decide(Self.failure(Self.network)) == .giveUp)
    #expect(Retry(.exponential(attempts: 0)).decide(Self.failure(Self.network)) == .giveUp)
    #expect(Retry(.constant(.seconds(3), attempts: -7)).decide(Self.failure(Self.network)) == .giveUp)
  }

  @Test func endlessAttemptsDoNotEnd() {
    let retry = Retry(.exponential(attempts: .max))
    #expect(
      retry.decide(Self.failure(Self.network, consecutive: .max - 1, random: 0.5)) == .resume(after: .seconds(30)))
  }

  // MARK: Waiting

  @Test(arguments: [
    (1, Duration.seconds(1)), (2, .seconds(2)), (3, .seconds(4)), (6, .seconds(32)), (7, .seconds(60)),
    (8, .seconds(60)),
    (1_000, .seconds(60)), (.max, .seconds(60)), (0, .seconds(1)), (-5, .seconds(1)),
  ])
  func boundDoublesUpToTheCap(consecutive: Int, bound: Duration) {
    let backOff = BackOff.exponential()
    #expect(backOff.bound(afterFailures: consecutive) == bound)
    #expect(backOff.delay(afterFailures: consecutive, random: 0) == .zero)
    #expect(backOff.delay(afterFailures: consecutive, random: 0.25) == bound / 4)
    #expect(backOff.delay(afterFailures: consecutive, random: 0.999_999) < bound)
  }

  @Test func jitterFillsTheWholeInterval() {
    var generator = SplitMix(state: 7)
    let backOff = BackOff.exponential(base: .seconds(8), cap: .seconds(8))
    var eighths = Set<Int64>()
    for _ in 0..<1_000 {
      let delay = backOff.delay(afterFailures: 1, random: Double.random(in: 0..<1, using: &generator))
      #expect(delay >= .zero && delay < .seconds(8))
      eighths.insert(delay.components.seconds)
    }
    #expect(eighths == Set(0..<8))
  }

  @Test(arguments: [-1, 1, 2, Double.nan, .infinity, -.infinity])
  func numbersThatAreNoChanceAreTheLongestWait(random: Double) {
    #expect(BackOff.exponential().delay(afterFailures: 2, random: random) == .seconds(2))
  }

  @Test func constantWaitsHaveNoJitter() {
    let backOff = BackOff.constant(.milliseconds(1_500), attempts: 3)
    for random in [0, 0.5, 0.9] {
      #expect(backOff.delay(afterFailures: 2, random: random) == .milliseconds(1_500))
    }
    #expect(backOff.description == "up to 3 attempts, waiting 1.5 s")
    #expect(BackOff.never.description == "one attempt")
  }

  @Test func extremeTimesAreCut() {
    let year = Duration.seconds(365 * 86_400)
    let huge = BackOff.exponential(
      base: Duration(secondsComponent: .max, attosecondsComponent: 0),
      cap: Duration(secondsComponent: .max, attosecondsComponent: 0))
    #expect(huge.delay(afterFailures: 5, random: 1) == year)
    let negative = BackOff.exponential(base: .seconds(-3), cap: .seconds(-1))
    #expect(negative.delay(afterFailures: 5, random: 1) == .zero)
    let tiny = BackOff.exponential(base: Duration(secondsComponent: 0, attosecondsComponent: 1), cap: year)
    #expect(tiny.bound(afterFailures: .max) == year)
    #expect(BackOff.exponential(base: .seconds(90)).bound(afterFailures: 1) == .seconds(60))
  }

  // MARK: Retry-After

  @Test func retryAfterIsAFloor() {
    var error = DownloadError(.httpStatus, "busy", httpStatus: 503, retryAfter: .seconds(120))
    #expect(Retry().decide(Self.failure(error)) == .resume(after: .seconds(120)))
    // The back-off begins when the time of Retry-After has passed.
    #expect(Retry().decide(Self.failure(error, random: 0.5)) == .resume(after: .milliseconds(120_500)))
    error.retryAfter = .seconds(0)
    #expect(Retry().decide(Self.failure(error, random: 0.5)) == .resume(after: .milliseconds(500)))
  }

  @Test func retryAfterTakesADate() {
    let now = Date(timeIntervalSince1970: 1_000_000)
    var error = DownloadError(.httpStatus, "busy", httpStatus: 429, retryAfter: .date(now + 90))
    #expect(Retry().decide(Self.failure(error, now: now)) == .resume(after: .seconds(90)))
    error.retryAfter = .date(now - 90)
    #expect(Retry().decide(Self.failure(error, now: now)) == .resume(after: .zero))
  }

  @Test(arguments: [RetryAfter.seconds(3_601), .seconds(.max), .date(.distantFuture)])
  func askingForTooLongIsReported(retryAfter: RetryAfter) {
    let error = DownloadError(.httpStatus, "busy", httpStatus: 503, retryAfter: retryAfter)
    #expect(Retry().decide(Self.failure(error)) == .giveUp)
    let patient = Retry(maximumRetryAfter: .seconds(400 * 86_400))
    #expect(patient.decide(Self.failure(error)) != .giveUp)
  }

  @Test func retryAfterDoesNotReviveWhatIsGivenUp() {
    let error = DownloadError(.httpStatus, "gone", httpStatus: 404, retryAfter: .seconds(1))
    #expect(Retry().decide(Self.failure(error)) == .giveUp)
    let busy = DownloadError(.httpStatus, "busy", httpStatus: 503, retryAfter: .seconds(1))
    #expect(Retry().decide(Self.failure(busy, consecutive: 5)) == .giveUp)
  }

  // MARK: Purity and the table

  @Test func equalFailuresGetEqualDecisions() {
    let retry = Retry()
    for code in FailureTableTests.codes.keys {
      let failure = Self.failure(DownloadError(code, "x"), consecutive: 2, random: 0.3)
      let first = retry.decide(failure)
      for _ in 0..<3 { #expect(retry.decide(failure) == first) }
    }
  }

  @Test(arguments: [DownloadError.Code.digestMismatch, .invalidResponse])
  func someFailuresAreTriedOnlyOnceMore(code: DownloadError.Code) {
    let retry = Retry(.exponential(attempts: 100))
    #expect(retry.decide(Self.failure(DownloadError(code, "x"), consecutive: 1)) != .giveUp)
    #expect(retry.decide(Self.failure(DownloadError(code, "x"), consecutive: 2)) == .giveUp)
  }

  @Test func waitingUsesUpNoAttemptsUnlessARowSaysSo() {
    let full = DownloadError(.noSpace, "full")
    #expect(Retry().decide(Self.failure(full, consecutive: 1000)) == .wait(for: .disk, atMost: .seconds(30)))
    let table = FailureTable.standard.with(.code(.noSpace), .waitForDisk, because: "a while", attempts: 3)
    #expect(Retry(table: table).decide(Self.failure(full, consecutive: 3)) == .giveUp)
    #expect(Retry(.never).decide(Self.failure(full)) == .giveUp, "a policy with one attempt does not wait either")
  }

  @Test func aDeadLinkIsRenewedAtOnceButNotForEver() {
    let dead = DownloadError(.httpStatus, "gone", httpStatus: 410)
    let retry = Retry(.constant(.seconds(4), attempts: 3))
    #expect(retry.decide(Self.failure(dead, consecutive: 1)) == .refresh(after: .zero))
    #expect(retry.decide(Self.failure(dead, consecutive: 2)) == .refresh(after: .seconds(4)))
    #expect(retry.decide(Self.failure(dead, consecutive: 3)) == .giveUp)
  }

  @Test func aRowMayHaveItsOwnWaitsAndCount() {
    let table = FailureTable.standard.with(
      .httpStatus(404), .resume, because: "it is being uploaded", backOff: .constant(.seconds(10), attempts: 3))
    let missing = DownloadError(.httpStatus, "missing", httpStatus: 404)
    for backOff in [BackOff.never, .exponential(attempts: 100)] {
      let retry = Retry(backOff, table: table)
      func decide(_ repeated: Int) -> RetryDecision {
        retry.decide(Failure(error: missing, consecutive: repeated + 2, repeated: repeated))
      }
      #expect(decide(1) == .resume(after: .seconds(10)))
      #expect(decide(2) == .resume(after: .seconds(10)))
      #expect(decide(3) == .giveUp)
    }
    #expect(table.description.contains("(up to 3 attempts, waiting 10 s)"))
    let other = DownloadError(.httpStatus, "busy", httpStatus: 503)
    #expect(Retry(.never, table: table).decide(Failure(error: other)) == .giveUp)
  }

  @Test func everyRowIsObeyed() {
    for row in FailureTable.standard.rows {
      let error: DownloadError =
        switch row.key {
        case .scope(let scope): DownloadError(.init("unheardOf"), "x", scope: scope)
        case .code(let code): DownloadError(code, "x")
        case .httpStatus(let status): DownloadError(.httpStatus, "x", httpStatus: status)
        case .httpStatusClass(let hundreds): DownloadError(.httpStatus, "x", httpStatus: hundreds * 100 + 99)
        case .other: DownloadError(.init("unheardOf"), "x")
        }
      let expected: RetryDecision =
        switch row.action {
        case .resume: .resume(after: .zero)
        case .restart: .restart(after: .zero)
        case .refresh: .refresh(after: .zero)
        case .waitForNetwork: .wait(for: .network, atMost: .seconds(30))
        case .waitForDisk: .wait(for: .disk, atMost: .seconds(30))
        case .waitForOwner: .wait(for: .owner, atMost: .seconds(5))
        case .waitForDescriptors: .wait(for: .descriptors, atMost: .seconds(1))
        case .giveBack: .giveBack
        default: .giveUp
        }
      #expect(Retry().decide(Self.failure(error)) == expected, "\(row.key)")
    }
  }

  @Test(arguments: [Retry(), Retry(.never), Retry(.constant(.seconds(5))), Retry(.exponential(attempts: 1_000))])
  func keepsTheContract(retry: Retry) async throws {
    try await RetryPolicyConformance(retry).run()
  }

  @Test func anActionThatIsNotKnownIsGivenUp() {
    let table = FailureTable.standard.with(.code(.network), .init("waitForNetwork"), because: "a later version")
    #expect(Retry(table: table).decide(Self.failure(Self.network)) == .giveUp)
  }
}

/// A small generator with a seed.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
