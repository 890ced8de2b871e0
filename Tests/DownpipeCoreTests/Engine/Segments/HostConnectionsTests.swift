import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// The limit of a host, over all downloads and segments.
@Suite(.endsHangs)
struct HostConnectionsTests {
  private let connections = HostConnections(limit: 2)
  private let ended = Watched(0)

  private func add() -> HostConnections.Ticket? { connections.add("a") { ended.update { $0 += 1 } } }

  @Test func connectionsAreAddedUpToTheLimit() async throws {
    let first = try await connections.open("a")
    let second = try #require(add())
    #expect(add() == nil)
    #expect(!connections.hasRoom("a") && connections.hasRoom("b"))
    connections.close(second)
    #expect(add() != nil)
    connections.close(first)
  }

  @Test func aDownloadThatBeginsTakesThePlaceOfAnAddedConnection() async throws {
    let first = try await connections.open("a")
    let added = try #require(add())
    async let second = connections.open("a")
    await ended.wait { $0 == 1 }
    // The place is that of the download, which waits for it.
    #expect(add() == nil)
    connections.close(added)
    let ticket = try await second
    #expect(add() == nil)
    connections.close(ticket)
    connections.close(first)
    #expect(add() != nil)
  }

  @Test func aLowerLimitEndsAddedConnectionsAndAHigherOneAdmitsThoseThatWait() async throws {
    connections.setLimit(4)
    let first = try await connections.open("a")
    let added = [try #require(add()), try #require(add()), try #require(add())]
    connections.setLimit(2)
    #expect(ended.value == 2)
    for ticket in added.suffix(2) { connections.close(ticket) }
    #expect(ended.value == 2)
    connections.setLimit(1)
    #expect(ended.value == 3)
    connections.close(added[0])
    async let second = connections.open("a")
    connections.setLimit(nil)
    connections.close(try await second)
    connections.close(first)
  }

  @Test func aDownloadBeyondTheLimitTakesNoPlaceOfAnother() async throws {
    connections.setLimit(1)
    let first = try await connections.open("a")
    let beyond = try await connections.open("a", mayExceed: true)
    #expect(add() == nil)
    async let waiting = connections.open("a")
    while connections.waiting("a") == 0 { await Task.yield() }
    connections.close(first)
    #expect(connections.waiting("a") == 1, "one connection is open")
    connections.close(beyond)
    let second = try await waiting
    let again = try await connections.open("a", mayExceed: true)
    // With a higher limit, none of the two is beyond it.
    connections.setLimit(3)
    let third = try await connections.open("a")
    let task = Task { try await connections.open("a") }
    while connections.waiting("a") == 0 { await Task.yield() }
    for ticket in [second, third, again] { connections.close(ticket) }
    connections.close(try await task.value)
    #expect(connections.waiting("a") == 0)
  }

  @Test func aDownloadThatMayExceedTakesThePlaceOfAnAddedConnection() async throws {
    let first = try await connections.open("a")
    let added = try #require(add())
    async let second = connections.open("a", mayExceed: true)
    await ended.wait { $0 == 1 }
    connections.close(added)
    connections.close(try await second)
    connections.close(first)
    #expect(add() != nil)
  }

  @Test func aWaitingDownloadCanBeCancelled() async throws {
    connections.setLimit(1)
    let first = try await connections.open("a")
    let task = Task { try await connections.open("a") }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    connections.close(first)
    let again = try await connections.open("a")
    connections.close(again)
    connections.close(again)
    #expect(connections.hasRoom("a"))
  }

  @Test("downloads get places in the order of their requests, and one that gives up leaves none behind")
  func order() async throws {
    connections.setLimit(1)
    let first = try await connections.open("a")
    let served = Watched<[Int]>([])
    var tasks: [Task<Void, any Error>] = []
    for number in 0..<4 {
      tasks.append(
        Task {
          let ticket = try await connections.open("a")
          served.update { $0.append(number) }
          connections.close(ticket)
        })
      while connections.waiting("a") != number + 1 { await Task.yield() }
    }
    tasks[1].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[1].value }
    connections.close(first)
    for number in [0, 2, 3] { try await tasks[number].value }
    #expect(served.value == [0, 2, 3] && connections.count == 0)
  }
}
