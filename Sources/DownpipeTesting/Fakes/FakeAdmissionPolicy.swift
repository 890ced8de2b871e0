public import DownpipeCore

/// An admission policy that calls a closure and records its questions.
///
/// ```swift
/// let oneFilm = FakeAdmissionPolicy { candidate, running in
///   candidate.tags.contains("film") && running.perTag["film"] != nil ? .refused("one film at a time") : .admitted
/// }
/// ```
public final class FakeAdmissionPolicy: AdmissionPolicy {
  /// A call of the policy and its result.
  public struct Question: Sendable, Hashable {
    /// The download that was to start.
    public let candidate: Candidate
    /// The downloads that were running.
    public let running: RunningDownloads
    /// The result of the policy.
    public let answer: Admission
  }

  /// The limit that sources are told; `nil` for none.
  public let maximumConcurrent: Int?
  /// The limit for each host that sources are told; `nil` for none.
  public let maximumPerHost: Int?
  private let answering: @Sendable (Candidate, RunningDownloads) -> Admission
  private let asked = Watched<[Question]>([])

  /// Creates a policy that calls the closure; without one it admits every download.
  public init(
    maximumConcurrent: Int? = nil, maximumPerHost: Int? = nil,
    _ answering: @escaping @Sendable (_ candidate: Candidate, _ running: RunningDownloads) -> Admission = { _, _ in
      .admitted
    }
  ) {
    self.maximumConcurrent = maximumConcurrent
    self.maximumPerHost = maximumPerHost
    self.answering = answering
  }

  /// The calls so far, in order.
  public var questions: [Question] { asked.value }

  /// Calls the closure.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    let answer = answering(candidate, running)
    asked.update { $0.append(Question(candidate: candidate, running: running, answer: answer)) }
    return answer
  }
}
