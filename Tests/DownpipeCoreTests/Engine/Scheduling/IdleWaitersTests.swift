import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// Callers that wait until the downloader is idle.
@Suite(.endsHangs)
struct IdleWaitersTests {
  private struct Box: Sendable {
    var waiters = IdleWaiters()
    var inserted = 0
  }
  private let box = Watched(Box())

  private func wait(_ number: UInt64) -> Task<Result<Void, any Error>, Never> {
    Task {
      await withCheckedContinuation { waiter in
        box.update {
          $0.waiters.insert(waiter, number)
          $0.inserted += 1
        }
      }
    }
  }

  @Test func aCancelledWaiterGoesAndTheOthersStay() async throws {
    let numbers = box.update { [$0.waiters.makeNumber(), $0.waiters.makeNumber(), $0.waiters.makeNumber()] }
    #expect(Set(numbers).count == 3)
    let tasks = numbers.map(wait)
    await box.wait { $0.inserted == 3 }
    box.update { $0.waiters.cancel([numbers[1], 999]) }
    await #expect(throws: CancellationError.self) { try await tasks[1].value.get() }
    #expect(!box.value.waiters.isEmpty)
    // A second call does nothing: a continuation is resumed once.
    box.update { $0.waiters.cancel([numbers[1]]) }
    box.update { $0.waiters.finish(.success(())) }
    #expect(box.value.waiters.isEmpty)
    try await tasks[0].value.get()
    try await tasks[2].value.get()
    box.update { $0.waiters.finish(.success(())) }
  }

  @Test func allAreToldOfAnError() async throws {
    let tasks = [wait(1), wait(2)]
    await box.wait { $0.inserted == 2 }
    box.update { $0.waiters.finish(.failure(DownloadError.shutDown)) }
    for task in tasks {
      await #expect { try await task.value.get() } throws: { ($0 as? DownloadError)?.code == .shutDown }
    }
  }
}
