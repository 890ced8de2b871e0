public import DownpipeCore

/// An admission policy made of a closure; it records what it was asked.
///
/// ```swift
/// let oneFilm = FakeAdmissionPolicy { candidate, running in
///   candidate.tags.contains("film") && running.perTag["film"] != nil ? .refused("one film at a time") : .admitted
/// }
/// ```
public final class FakeAdmissionPolicy: AdmissionPolicy {
  /// One question and its answer.
  public struct Question: Sendable, Hashable {
    /// Who wanted to start.
    public let candidate: Candidate
    /// What ran.
    public let running: RunningDownloads
    /// What was answered.
    public let answer: Admission
  }

  /// What sources are told.
  public let maximumConcurrent: Int?
  /// What sources are told for each host.
  public let maximumPerHost: Int?
  private let answering: @Sendable (Candidate, RunningDownloads) -> Admission
  private let asked = Watched<[Question]>([])

  /// Makes a policy; it admits everything unless a closure says otherwise.
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

  /// What was asked, in order.
  public var questions: [Question] { asked.value }

  /// Asks the closure.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    let answer = answering(candidate, running)
    asked.update { $0.append(Question(candidate: candidate, running: running, answer: answer)) }
    return answer
  }
}
