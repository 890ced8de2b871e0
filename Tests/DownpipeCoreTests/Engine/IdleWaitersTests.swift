import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// Callers that wait until the downloader is idle.
@Suite(.endsHangs)
struct IdleWaitersTests {
  private let callers = [Completion(), Completion(), Completion()]
  private var waiters = IdleWaiters()

  init() { for caller in callers { waiters.insert(caller) } }

  @Test func aCallerWhoseTaskWasCancelledGoesAndTheOthersStay() async throws {
    var waiters = waiters
    let task = Task { [callers] in try await callers[1].wait() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    waiters.remove(callers[1])
    #expect(waiters.count == 2)
    waiters.finish(.success(()))
    #expect(waiters.isEmpty)
    try await callers[0].wait()
    try await callers[2].wait()
  }

  @Test func onlyThoseEndThatWaitedThen() async throws {
    var waiters = waiters
    var earlier = waiters
    waiters.remove(callers[0])
    let late = Completion()
    waiters.insert(late)
    waiters.finish(earlier, .success(()))
    #expect(waiters.count == 1)
    try await callers[1].wait()
    waiters.finish(.failure(DownloadError.shutDown))
    await #expect { try await late.wait() } throws: { ($0 as? DownloadError)?.code == .shutDown }
    earlier.finish(.success(()))
  }

  @Test func allAreToldOfAnError() async throws {
    var waiters = waiters
    waiters.finish(.failure(DownloadError.shutDown))
    for caller in callers {
      await #expect { try await caller.wait() } throws: { ($0 as? DownloadError)?.code == .shutDown }
    }
  }
}
