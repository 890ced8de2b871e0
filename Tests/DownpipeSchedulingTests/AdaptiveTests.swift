import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct AdaptiveTests {
  private let here = Candidate(host: "example.org")
  private let overload = DownloadError(.httpStatus, "the server responded with 503", httpStatus: 503)

  @Test(arguments: [Adaptive(), Adaptive(initial: 1, minimum: 1, maximum: 1), Adaptive(initial: 9, maximum: 4)])
  func keepsTheContract(policy: Adaptive) async throws { try await AdmissionPolicyConformance(policy).run() }

  /// The number of downloads from a host that the session admits.
  private func limit(_ session: any AdmissionSession, _ candidate: Candidate) -> Int {
    var running = RunningDownloads()
    while session.admit(candidate, beside: running, at: .zero) == .admitted { running.insert(candidate) }
    return running.total
  }

  private func end(
    _ session: any AdmissionSession, _ result: RunEnd.Result, from start: Duration = .zero, to end: Duration = .zero
  ) { session.ended(here, RunEnd(result, startedAt: start, endedAt: end)) }

  @Test func successRaisesTheLimitByOneForEachRound() {
    let session = Adaptive(initial: 2, maximum: 5).start()
    #expect(limit(session, here) == 2)
    var limits: [Int] = []
    for _ in 0..<20 {
      end(session, .finished)
      limits.append(limit(session, here))
    }
    #expect(limits == limits.sorted())
    #expect(limits[2] == 3)
    #expect(limits.last == 5)
    #expect(limit(session, Candidate(host: "other.org")) == 2)
  }

  @Test func overloadHalvesTheLimitOnceForTheRunsThatItConcerns() {
    let session = Adaptive(initial: 8, maximum: 8).start()
    end(session, .failed(overload), from: .seconds(1), to: .seconds(10))
    end(session, .failed(overload), from: .seconds(2), to: .seconds(11))
    #expect(limit(session, here) == 4)
    end(session, .failed(DownloadError(.timedOut, "")), from: .seconds(12), to: .seconds(20))
    #expect(limit(session, here) == 2)
    for step in 30..<60 { end(session, .failed(overload), from: .seconds(step), to: .seconds(step)) }
    #expect(limit(session, here) == 1)
  }

  @Test func otherEndsChangeNothing() {
    let session = Adaptive(initial: 4).start()
    end(session, .stopped)
    end(session, .failed(DownloadError(.network, "")))
    end(session, .failed(DownloadError(.httpStatus, "", httpStatus: 404)))
    #expect(limit(session, here) == 4)
  }

  @Test func theReasonNamesHostAndLimit() {
    var running = RunningDownloads()
    running.insert(here)
    running.insert(here)
    #expect(
      Adaptive().start().admit(here, beside: running, at: .zero)
        == .hostFull("2 downloads from example.org are running, and it is allowed 2 for now"))
  }

  @Test func hostsAreBounded() {
    let session = Adaptive(initial: 2, maximum: 4).start()
    for index in 0..<5_000 {
      for _ in 0..<3 {
        session.ended(Candidate(host: "h\(index)"), RunEnd(.finished, startedAt: .zero, endedAt: .seconds(index)))
      }
    }
    #expect(limit(session, Candidate(host: "h4999")) == 3)
    #expect(limit(session, Candidate(host: "h0")) == 2)
  }
}
