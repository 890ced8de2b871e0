import DownpipeCore

extension SourceConformance {
  func checkPace(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check(
      "pace-is-kept", "the source counts all bytes of the body, and pauses as the pace says",
      needs: ["whole-file", "discard-ends-the-request"]
    ) {
      let clock = ContinuousClock()
      let state = Watched((bytes: 0, pausedAt: ContinuousClock.Instant?.none, resumedAt: ContinuousClock.Instant?.none))
      var request = request()
      request.pace = TransferPace { bytes in
        state.update { state in
          state.bytes += bytes
          guard let pausedAt = state.pausedAt else {
            state.pausedAt = clock.now
            return .milliseconds(60)
          }
          if clock.now - pausedAt < .milliseconds(60) { return .milliseconds(20) }
          state.resumedAt = state.resumedAt ?? clock.now
          return .zero
        }
      }
      let (_, body) = try await read(session, request)
      try expectEqual(body.bytes.count, content.count, "the number of bytes that arrived")
      // After the only chunk of a body there is nothing to wait for.
      guard body.firstChunk < content.count else { return }
      try expectEqual(state.value.bytes, content.count, "the number of bytes that were counted")
      try expect(state.value.resumedAt != nil, "the pace was not asked again when the pause had ended")
    }
    await report.check(
      "cancelled-in-a-pause", "cancelling the task ends a pause of the pace with CancellationError",
      needs: [
        "cancelled-before-opening", "sink-error-ends-the-transfer", "cancelled-in-the-body", "discard-ends-the-request",
      ]
    ) {
      let isPaused = Watched(false)
      var request = request()
      request.pace = TransferPace { _ in
        isPaused.update { $0 = true }
        return .seconds(1)
      }
      let paced = request
      let hasEnded = Watched(false)
      let task = Task {
        defer { isPaused.update { $0 = true } }
        let reply = try await session.open(paced)
        try await reply.body.forEachChunk { _ in }
        hasEnded.update { $0 = true }
      }
      await isPaused.wait { $0 }
      task.cancel()
      let result = await task.result
      // A body of one chunk may end before the cancellation.
      if !hasEnded.value { try expectCancellation(result) }
    }
  }
}
