import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Bodies from other origins than a transport's callbacks.
@Suite(.endsHangs)
struct BodyTests {
  private struct Broken: Error {}

  private func collect(_ body: Body) async throws -> [[UInt8]] {
    let chunks = Watched<[[UInt8]]>([])
    try await body.forEachArray { chunk in chunks.update { $0.append(chunk) } }
    return chunks.value
  }

  @Test func aSequenceIsPushedChunkByChunk() async throws {
    let (chunks, continuation) = AsyncStream<[UInt8]>.makeStream()
    for chunk in [[1, 2], [], [3]] as [[UInt8]] { continuation.yield(chunk) }
    continuation.finish()
    #expect(try await collect(Body(chunks)) == [[1, 2], [3]], "empty chunks are skipped")
  }

  @Test func whatTheSequenceThrowsEndsTheBody() async throws {
    let chunks = AsyncThrowingStream<[UInt8], any Error> { continuation in
      continuation.yield([1])
      continuation.finish(throwing: Broken())
    }
    await #expect(throws: Broken.self) { _ = try await collect(Body(chunks)) }
  }

  @Test func aSinkThatThrowsAsksForNoMore() async throws {
    let asked = Watched(0)
    let chunks = AsyncStream<[UInt8]> {
      asked.update { $0 += 1 }
      return [1]
    }
    await #expect(throws: Broken.self) { try await Body(chunks).forEachChunk { _ in throw Broken() } }
    #expect(asked.value == 1)
  }

  @Test func aCancelledSequenceIsNoWholeBody() async throws {
    let (chunks, continuation) = AsyncStream<[UInt8]>.makeStream()
    continuation.yield([1])
    let task = Task { try await collect(Body(chunks)) }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }

  @Test func discardingEndsTheRequest() {
    let discards = Watched(0)
    let body = Body(AsyncStream<[UInt8]> { nil }, discard: { discards.update { $0 += 1 } })
    body.discard()
    #expect(discards.value == 1)
  }
}
