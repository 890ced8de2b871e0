public import DownpipeCore

/// Checks that an admission policy keeps the contract of ``/DownpipeCore/AdmissionPolicy``.
///
/// ```swift
/// try await AdmissionPolicyConformance(MyLimit()).run()
/// ```
public struct AdmissionPolicyConformance: Sendable {
  private let policy: any AdmissionPolicy
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite for a policy. `limit` is the longest time for a rule; excluded rules are not checked.
  public init(
    _ policy: any AdmissionPolicy, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.policy = policy
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("AdmissionPolicyConformance(\(policy.name))", excluding: exclusions, limit: limit)
    let policy = policy
    let session = policy.start()
    let candidates = Candidate.conformanceTable + Self.sized
    await report.check("admit-is-pure", "equal questions have equal answers") {
      for candidate in candidates {
        for running in Self.growing(candidate, to: 8) {
          let answers = (0..<3).map { _ in session.admit(candidate, beside: running, at: .zero) }
          try expect(Set(answers).count == 1, "\(candidate) was answered \(answers)")
        }
      }
    }
    report.build(on: "admit-is-pure")
    await report.check("refusal-is-monotone", "a download that is refused beside n like it is refused beside n + 1") {
      for candidate in candidates {
        var refusedBeside: Int?
        for running in Self.growing(candidate, to: 128) {
          if session.admit(candidate, beside: running, at: .zero) != .admitted {
            refusedBeside = refusedBeside ?? running.total
          } else if let refusedBeside {
            throw Deviation("\(candidate) is refused beside \(refusedBeside) and admitted beside \(running.total)")
          }
        }
      }
    }
    await report.check("something-may-run", "some download is admitted while nothing runs") {
      try expect(
        candidates.contains { session.admit($0, beside: RunningDownloads(), at: .zero) == .admitted },
        "each of \(candidates.count) different downloads was refused")
    }
    await report.check("any-size-may-run", "a download that may run alone may do so with any size") {
      for candidate in Self.sized {
        guard session.admit(candidate.withoutSize, beside: RunningDownloads(), at: .zero) == .admitted else { continue }
        try expect(
          session.admit(candidate, beside: RunningDownloads(), at: .zero) == .admitted,
          "while nothing runs, \(candidate) is refused for its size")
      }
    }
    await report.check("refusal-says-why", "a refusal has a reason") {
      for candidate in candidates {
        for running in Self.growing(candidate, to: 128) {
          let reason: String
          switch session.admit(candidate, beside: running, at: .zero) {
          case .admitted: continue
          case .full(let why), .hostFull(let why), .refused(let why), .wait(let why, _, _): reason = why
          }
          try expect(reason.contains { !$0.isWhitespace }, "the reason for \(candidate) is empty")
        }
      }
    }
    await report.check(
      "full-holds-for-all", "when it is full for one download, it is full for every one at least as large"
    ) {
      for candidate in candidates {
        for running in Self.growing(candidate, to: 32) {
          guard case .full = session.admit(candidate, beside: running, at: .zero) else { continue }
          for other in candidates
          where other.isAtLeast(candidate) && session.admit(other, beside: running, at: .zero) == .admitted {
            throw Deviation("beside \(running.total) it is full for \(candidate), and \(other) is admitted")
          }
          break
        }
      }
    }
    await report.check(
      "host-full-holds-for-the-host",
      "when a host is full for one download, it is full for every download from that host at least as large"
    ) {
      for candidate in candidates {
        for running in Self.growing(candidate, to: 32) {
          guard case .hostFull = session.admit(candidate, beside: running, at: .zero) else { continue }
          for other in candidates where other.host == candidate.host && other.isAtLeast(candidate) {
            if session.admit(other, beside: running, at: .zero) == .admitted {
              throw Deviation("the host of \(candidate) is full beside \(running.total), and \(other) is admitted")
            }
          }
          break
        }
      }
    }
    await report.check("maximum-is-kept", "at most maximumConcurrent and maximumPerHost downloads are admitted") {
      for candidate in candidates {
        for (what, most) in [
          ("maximumConcurrent", policy.maximumConcurrent), ("maximumPerHost", policy.maximumPerHost),
        ] {
          guard let most, (0...10_000).contains(most) else { continue }
          // Not every policy counts URLs without a host.
          if what == "maximumPerHost", candidate.host.isEmpty { continue }
          var running = RunningDownloads()
          for _ in 0..<most { running.insert(candidate) }
          try expect(
            session.admit(candidate, beside: running, at: .zero) != .admitted,
            "\(what) is \(most), and one more is admitted beside \(most)")
        }
      }
    }
    await report.check("waits-end", "a download that must wait until an instant is asked for again at that instant") {
      for candidate in candidates {
        let session = policy.start()
        var now = Duration.zero
        for _ in 0..<64 {
          switch session.admit(candidate, beside: RunningDownloads(), at: now) {
          case .admitted: session.started(candidate, at: now)
          case .wait(_, let until, _):
            try expect(until > now, "at \(now) \(candidate) must wait until \(until)")
            now = until
          case .full, .hostFull, .refused: break
          }
        }
      }
    }
    try report.finish()
  }

  /// Downloads whose sizes are known.
  private static let sized: [Candidate] = [0, 1, 1_000_000, 5_000_000_000, Int64.max].flatMap { size in
    ["", "example.org"].map { Candidate(host: $0, size: ByteCount(size)) }
  }

  /// Running downloads like `candidate`: none, one, two and so on.
  private static func growing(_ candidate: Candidate, to count: Int) -> [RunningDownloads] {
    var running = RunningDownloads()
    return [running]
      + (0..<max(0, count)).map { _ in
        running.insert(candidate)
        return running
      }
  }
}

extension Candidate {
  /// Whether the size is known to be at least that of another candidate, or equal to it.
  fileprivate func isAtLeast(_ other: Candidate) -> Bool {
    if let mine = size.bytes, let others = other.size.bytes { mine >= others } else { size == other.size }
  }
}
