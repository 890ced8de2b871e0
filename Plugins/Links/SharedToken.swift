import DownpipeCore
import Synchronization

/// The access token that all requests share, and the call of the provider that replaces it: one at a time.
///
/// The call is a task of its own, because a provider that is interrupted may have used up the refresh token (RFC 6749 §10.4).
/// Its owners are the requests that wait for it. When one is cancelled, the others go on waiting; the last one cancels the call
/// and waits for its end.
final class SharedToken: Sendable, CustomReflectable {
  typealias Provider = @Sendable (_ rejected: AccessToken?) async throws -> AccessToken
  private typealias Answers = AsyncThrowingStream<AccessToken, any Error>

  private struct Waiter: Sendable {
    let number: Int
    let answers: Answers.Continuation
  }

  private struct Call: Sendable {
    let task: Task<Void, Never>
    /// In the order of their arrival. A call without waiters was cancelled.
    var waiters: [Waiter] = []
  }

  private struct State: Sendable {
    var token: AccessToken?
    var call: Call?
    var lastNumber = 0
  }

  private enum Turn: Sendable {
    case use(AccessToken)
    case wait(number: Int, Answers)
    /// A cancelled call has to end before the next one.
    case waitForEnd(Task<Void, Never>)
  }

  private let state = Mutex(State())
  private let stage: String
  private let provider: Provider

  init(stage: String, _ provider: @escaping Provider) {
    self.stage = stage
    self.provider = provider
  }

  /// A mirror without the token.
  var customMirror: Mirror { Mirror(self, children: []) }

  /// The number of waiting requests, for tests.
  var waiting: Int { state.withLock { $0.call?.waiters.count ?? 0 } }

  /// Returns the token in use; the provider is asked if there is none, or if it is the rejected one.
  ///
  /// - Throws: `DownloadError` if the provider has no other token; `CancellationError`.
  func current(insteadOf rejected: AccessToken?) async throws -> AccessToken {
    while true {
      try Task.checkCancellation()
      switch turn(rejected) {
      case .use(let token): return token
      case .waitForEnd(let task): await task.value
      case .wait(let number, let answers):
        for try await token in answers { return token }
        // The stream of a cancelled task ends without an answer.
        await leave(number)
        throw CancellationError()
      }
    }
  }

  private func turn(_ rejected: AccessToken?) -> Turn {
    state.withLock { state in
      if let call = state.call, call.waiters.isEmpty { return .waitForEnd(call.task) }
      if state.call == nil {
        if let token = state.token, token != rejected { return .use(token) }
        state.call = Call(task: Task { await self.ask(rejected) })
      }
      state.lastNumber += 1
      let (answers, continuation) = Answers.makeStream()
      state.call?.waiters.append(Waiter(number: state.lastNumber, answers: continuation))
      return .wait(number: state.lastNumber, answers)
    }
  }

  private func ask(_ rejected: AccessToken?) async {
    let answer: Result<AccessToken, any Error>
    do { answer = .success(try await token(insteadOf: rejected)) } catch { answer = .failure(error) }
    let waiters = state.withLock { state in
      // Also the token of a cancelled call that has ended with one: the earlier token may be void.
      if case .success(let token) = answer { state.token = token }
      let waiters = state.call?.waiters ?? []
      state.call = nil
      return waiters
    }
    for waiter in waiters {
      waiter.answers.yield(with: answer)
      waiter.answers.finish()
    }
  }

  private func token(insteadOf rejected: AccessToken?) async throws -> AccessToken {
    let token: AccessToken
    do { token = try await provider(rejected) } catch let error as DownloadError { throw error } catch {
      // The descriptions of other errors may contain tokens: only the type is shown.
      throw failure("no access token could be obtained (\(type(of: error))): sign in again", cause: error)
    }
    guard token != rejected else {
      throw failure("the server rejects the access token, and the app has no other: sign in again")
    }
    return token
  }

  private func failure(_ message: String, cause: (any Error)? = nil) -> DownloadError {
    DownloadError(.httpStatus, message, stage: stage, httpStatus: 401, cause: cause)
  }

  /// Ends the wait of a cancelled request.
  private func leave(_ number: Int) async {
    let abandoned = state.withLock { state -> Task<Void, Never>? in
      state.call?.waiters.removeAll { $0.number == number }
      guard let call = state.call, call.waiters.isEmpty else { return nil }
      call.task.cancel()
      return call.task
    }
    await abandoned?.value
  }
}
