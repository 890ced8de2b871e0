import DownpipeTesting
import Testing

@testable import DownpipeCore

/// The limit of a host, over all downloads and segments.
@Suite(.timeLimit(.minutes(1)))
struct HostConnectionsTests {
  private let connections = HostConnections()
  private let ended = Watched(0)

  private func add(limit: Int = 2) -> HostConnections.Ticket? {
    connections.add("a", limit: limit) { ended.update { $0 += 1 } }
  }

  @Test func connectionsAreAddedUpToTheLimit() async throws {
    let first = try await connections.open("a", limit: 2)
    let second = try #require(add())
    #expect(add() == nil)
    #expect(!connections.hasRoom("a", limit: 2) && connections.hasRoom("b", limit: 2))
    connections.close(second)
    #expect(add() != nil)
    connections.close(first)
  }

  @Test func aDownloadThatBeginsTakesThePlaceOfAnAddedConnection() async throws {
    let first = try await connections.open("a", limit: 2)
    let added = try #require(add())
    async let second = connections.open("a", limit: 2)
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

  @Test func aWaitingDownloadCanBeCancelled() async throws {
    let first = try await connections.open("a", limit: 1)
    let task = Task { try await connections.open("a", limit: 1) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    connections.close(first)
    let again = try await connections.open("a", limit: 1)
    connections.close(again)
    connections.close(again)
    #expect(connections.hasRoom("a", limit: 1))
  }
}
