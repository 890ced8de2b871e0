import DownpipeCore
import Foundation

extension SourceConformance {
  /// An error that only the sink throws.
  private struct SinkStopped: Error, Equatable {
    let number: Int
  }

  /// With fewer remaining bytes a transport may finish before it notices a cancellation.
  private static let enoughLeft = 512 * 1024

  func head(_ session: any SourceSession, _ request: SourceRequest) async throws -> SourceReply {
    let reply = try await session.open(request)
    reply.body.discard()
    return reply
  }

  func read(_ session: any SourceSession, _ request: SourceRequest) async throws -> (SourceReply, ReceivedBody) {
    let reply = try await session.open(request)
    let body = ReceivedBody(limit: content.count)
    try await reply.body.forEachChunk(body.sink)
    body.end()
    return (reply, body)
  }

  func checkEndings(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check("end-is-reported", "a body reports its end, also when it is wrapped", when: end != nil) {
      let reply = try await session.open(request())
      let received = try await reply.body.forEachChunk(ReceivedBody(limit: content.count).sink)
      if let end { try expectEqual(received, end, "the end of the body") }
    }
    await report.check(
      "sink-error-ends-the-transfer", "an error of the sink is rethrown, and the sink is not called again"
    ) {
      let reply = try await session.open(request())
      let calls = Watched(0)
      do {
        try await reply.body.forEachChunk { _ in
          throw SinkStopped(
            number: calls.update { count in
              count += 1
              return count
            })
        }
      } catch let error as SinkStopped {
        try expectEqual(error.number, 1, "the call of the sink whose error was thrown")
        try expectEqual(calls.value, 1, "the number of calls of a sink that throws")
        return
      } catch {
        throw Deviation("instead of the sink's error it threw \(error)")
      }
      throw Deviation("the sink's error was dropped")
    }
    await report.check("cancelled-before-opening", "a cancelled task receives no bytes") {
      let content = content
      let task = Task<Void, any Error> {
        withUnsafeCurrentTask { $0?.cancel() }
        let reply = try await session.open(request())
        try await reply.body.forEachChunk(ReceivedBody(limit: content.count).sink)
      }
      try expectCancellation(await task.result)
    }
    await report.check(
      "cancelled-in-the-body", "cancelling the task ends the body with CancellationError",
      needs: ["cancelled-before-opening", "sink-error-ends-the-transfer"]
    ) {
      let body = ReceivedBody(limit: content.count)
      let handle = Watched<Task<Void, any Error>?>(nil)
      let task = Task {
        await handle.wait { $0 != nil }
        let reply = try await session.open(request())
        try await reply.body.forEachChunk { chunk in
          try body.sink(chunk)
          handle.value?.cancel()
        }
      }
      handle.update { $0 = task }
      let result = await task.result
      if case .success = result, content.count - body.firstChunk < Self.enoughLeft {
        return try body.expectBytes(content[...])
      }
      try expectCancellation(result)
    }
    await report.check(
      "cancelled-while-stalled", "cancelling the task ends a body that has stalled", when: stallingURL != nil,
      needs: ["cancelled-before-opening", "cancelled-in-the-body"]
    ) {
      guard let stallingURL else { return }
      let opened = Watched(false)
      let task = Task {
        defer { opened.update { $0 = true } }
        let reply = try await session.open(SourceRequest(url: stallingURL))
        opened.update { $0 = true }
        try await reply.body.forEachChunk { _ in }
      }
      await opened.wait { $0 }
      task.cancel()
      try expectCancellation(await task.result)
    }
    await report.check("discard-ends-the-request", "the source works after a reply was discarded") {
      for _ in 0..<4 { _ = try await head(session, request()) }
      let (_, body) = try await read(session, request())
      try body.expectBytes(content[...])
    }
  }

  func expectCancellation(_ result: Result<Void, any Error>) throws {
    switch result {
    case .success: throw Deviation("the cancelled transfer ended without an error")
    case .failure(let error):
      let isCancellation = error is CancellationError || (error as? DownloadError)?.code == .cancelled
      try expect(isCancellation, "instead of CancellationError it threw \(error)")
    }
  }
}
