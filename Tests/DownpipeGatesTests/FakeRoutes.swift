import DownpipeCore
import DownpipeGates
import Synchronization

/// Routes that a test changes.
final class FakeRoutes: RouteSource {
  private struct State {
    var result: Result<RouteTable, DownloadError>
    var reads = 0
  }

  private let state: Mutex<State>
  private let events: AsyncStream<Void>?
  private let continuation: AsyncStream<Void>.Continuation?

  init(_ table: RouteTable, tells: Bool = true) {
    state = Mutex(State(result: .success(table)))
    if tells {
      let (events, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
      self.events = events
      self.continuation = continuation
    } else {
      events = nil
      continuation = nil
    }
  }

  func set(_ table: RouteTable) { state.withLock { $0.result = .success(table) } }
  func fail() { state.withLock { $0.result = .failure(DownloadError(.network, "unreadable")) } }
  func tell() { continuation?.yield() }
  func stopTelling() { continuation?.finish() }
  var reads: Int { state.withLock(\.reads) }

  func read() throws -> RouteTable {
    try state.withLock { state in
      state.reads += 1
      return try state.result.get()
    }
  }

  func changes() -> AsyncStream<Void>? { events }
}
