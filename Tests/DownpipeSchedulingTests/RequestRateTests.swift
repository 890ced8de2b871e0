import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct RequestRateTests {
  private let none = RunningDownloads()
  private let here = Candidate(host: "example.org")
  private let there = Candidate(host: "other.org")

  @Test(arguments: [RequestRate(1), RequestRate(5, per: .seconds(2), burst: 3), RequestRate(2, scope: .all)])
  func keepsTheContract(rate: RequestRate) async throws { try await AdmissionPolicyConformance(rate).run() }

  @Test func startsAreSpacedEvenly() {
    let session = RequestRate(4).start()
    var starts: [Duration] = []
    for step in 0..<2_000 {
      let now = Duration.milliseconds(step)
      guard session.admit(here, beside: none, at: now) == .admitted else { continue }
      session.started(here, at: now)
      starts.append(now)
    }
    #expect(starts == (0..<8).map { .milliseconds($0 * 250) })
  }

  @Test func aHostThatMustWaitDoesNotHoldBackOthers() {
    let session = RequestRate(1, per: .seconds(10)).start()
    session.started(here, at: .seconds(5))
    #expect(
      session.admit(here, beside: none, at: .seconds(6))
        == .wait("at most 1 downloads start in 10 s from example.org", until: .seconds(15), scope: .host))
    #expect(session.admit(there, beside: none, at: .seconds(6)) == .admitted)
    #expect(session.admit(Candidate(), beside: none, at: .seconds(6)) == .admitted)
    #expect(session.admit(here, beside: none, at: .seconds(15)) == .admitted)
  }

  @Test func oneRateForAll() {
    let session = RequestRate(1, scope: .all).start()
    session.started(here, at: .zero)
    #expect(
      session.admit(there, beside: none, at: .milliseconds(1))
        == .wait("at most 1 downloads start in 1 s", until: .seconds(1), scope: .all))
  }

  @Test func afterAPauseABurstStartsAtOnce() {
    let session = RequestRate(1, burst: 3).start()
    var count = 0
    while session.admit(here, beside: none, at: .seconds(100)) == .admitted, count < 10 {
      session.started(here, at: .seconds(100))
      count += 1
    }
    #expect(count == 3)
    // Saved up, not more than the burst.
    #expect(session.admit(here, beside: none, at: .seconds(101)) == .admitted)
    session.started(here, at: .seconds(101))
    #expect(session.admit(here, beside: none, at: .seconds(101)) != .admitted)
  }

  @Test func manyHostsAreForgotten() {
    let session = RequestRate(1).start()
    for index in 0..<20_000 { session.started(Candidate(host: "h\(index)"), at: .seconds(index)) }
    #expect(session.admit(Candidate(host: "h19999"), beside: none, at: .milliseconds(19_999_500)) != .admitted)
    #expect(session.admit(Candidate(host: "h1"), beside: none, at: .seconds(20_000)) == .admitted)
  }

  @Test func summariesNameTheSettings() {
    #expect(RequestRate(2).summary == "2 in 1 s from one host")
    #expect(RequestRate(100, per: .seconds(60), burst: 10, scope: .all).summary == "100 in 60 s, 10 at once")
    #expect(RequestRate(0, per: .zero, burst: 0).summary == "1 in 0.001 s from one host")
  }
}
