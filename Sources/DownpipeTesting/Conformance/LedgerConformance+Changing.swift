@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  /// A part of a request that asks for another file.
  private struct Change: Sendable {
    let name: String
    let apply: @Sendable (inout DownloadRequest) throws -> Void
  }

  private static var changes: [Change] {
    [
      Change(name: "URL") { $0.url = try request("x", host: "other.example").url },
      Change(name: "size") { $0.expectedSize = .known(3) },
      Change(name: "digests of pieces") { $0.pieces = PieceDigests(.crc32, length: 9, bytes: [1, 2, 3, 4]) },
      Change(name: "digest") { $0.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])] },
    ]
  }

  /// Brings a record to an outcome for the request that the record has.
  private func end(
    _ record: DownloadRecord, _ events: [Lifecycle.Event], in store: any LedgerStore, at now: Date
  ) async throws -> (record: DownloadRecord, exchange: LedgerExchange) {
    var record = record
    Self.fill(&record)
    record.earlierArtifact = nil
    for event in events { record.apply(event) }
    let save = LedgerSave(record, [.state, .checkpoint, .steps])
    return (record, try await store.exchange([save], leasing: nil, at: now))
  }

  func checkChanging(_ report: ConformanceReport) async {
    for change in Self.changes {
      for adds in [true, false] {
        let way = adds ? "added again" : "updated"
        await report.check(
          "finished-\(change.name)-\(adds ? "added" : "updated")",
          "a finished download that is \(way) with another \(change.name) waits again"
        ) {
          let (ledger, store) = try await filled(["a"])
          try await store.bring("a", to: .finished, Self.fill)
          let before = try await store.known("a")
          let second = try await ledger.open()
          var request = before.request
          try change.apply(&request)
          if adds {
            let outcome = try await second.add([LedgerAddition(request: request, arrival: 1)], at: Self.time(5))
            try expectEqual(outcome.map(\.isNew), [true], "isNew of the outcome")
            let again = try await second.add([LedgerAddition(request: request, arrival: 1)], at: Self.time(6))
            try expectEqual(again.map(\.isNew), [false], "isNew when nothing has changed")
          } else {
            _ = try await second.update("a", at: Self.time(5)) { [request] in $0.request = request }
          }
          let after = try await second.known("a")
          try expectEqual(after.phase, .waiting, "the phase")
          try expectEqual(after.request, request, "the request")
          try expectEqual(after.generation, before.generation, "the generation")
          try expectEqual(after.earlierArtifact, before.steps.artifact, "the artifact that is replaced")
          try expectEqual(after.checkpoint, Checkpoint(), "the checkpoint")
          try expectEqual(after.steps, StepLog(), "the log of the steps")
          try expectEqual(try await second.counts(.all), [.waiting: 1], "the counts")
          try expectEqual(
            try await second.leased(scope: .own).map(\.id), ["a"], "the downloads that the second store leases")
        }
      }
    }
    for isMatching in [true, false] {
      await report.check(
        "finished-restart\(isMatching ? "-all" : "")", "the restart of a finished download keeps its artifact"
      ) {
        let (_, store) = try await filled(["a", "b"])
        try await store.bring("a", to: .finished, Self.fill)
        let before = try await store.known("a")
        let result = try await store.transition(
          isMatching ? .matching(.phases([.finished])) : .ids(["a"]), .restart, at: Self.time(5))
        try expectEqual(result.ids, ["a"], "the result")
        let after = try await store.known("a")
        try expectEqual(after.phase, .waiting, "the phase")
        try expectEqual(after.earlierArtifact, before.steps.artifact, "the artifact that is replaced")
        try expectEqual(after.steps, StepLog(), "the log of the steps")
        try expectEqual(after.updatedAt, Self.time(5), "the time of the last change")
        try expectEqual(try await store.counts(.all), [.waiting: 2], "the counts")
        try expectEqual(Set(try await store.leased().map(\.id)), ["a", "b"], "the downloads leased")
      }
    }
    await report.check(
      "outcome-of-an-earlier-request", "a download that finishes or fails with an earlier request waits again"
    ) {
      for hasFailed in [true, false] {
        let (ledger, store) = try await filled(["a"])
        let held = try expectValue(try await store.leased().first, "nothing was leased")
        let second = try await ledger.open()
        let url = try Self.request("x", host: "other.example").url
        _ = try await second.update("a", at: Self.time(1)) { $0.request.url = url }
        try expectEqual(try await store.known("a").phase, .transferring, "the phase while an owner holds the download")
        let events: [Lifecycle.Event] = hasFailed ? [.failedForGood] : [.bytesComplete, .stepsComplete]
        let (record, exchange) = try await end(held, events, in: store, at: Self.time(2))
        try expectEqual(exchange.saved, [true], "whether the outcome was saved")
        try expectEqual(exchange.reopened, ["a"], "the downloads that wait again")
        let after = try await store.known("a")
        try expectEqual(after.phase, .waiting, "the phase")
        try expectEqual(after.owner, nil, "the owner")
        try expectEqual(after.request.url, url, "the URL")
        try expectEqual(after.error, nil, "the error")
        try expectEqual(after.earlierArtifact, record.steps.artifact, "the artifact that is replaced")
        try expectEqual(after.steps, StepLog(), "the log of the steps")
        try expectEqual(try await store.counts(.all), [.waiting: 1], "the counts")
        try expectEqual(try await store.leased().map(\.id), ["a"], "the downloads leased")
      }
    }
    await report.check(
      "outcome-of-an-earlier-setting", "a download that fails with an earlier setting of a step waits again"
    ) {
      let (ledger, store) = try await filled(["a"])
      let held = try expectValue(try await store.leased().first, "nothing was leased")
      let second = try await ledger.open()
      let key = DownloadRequest.stepSettingPrefix + "key"
      _ = try await second.update("a", at: Self.time(1)) { $0.request.metadata[key] = "new" }
      let (_, exchange) = try await end(held, [.failedForGood], in: store, at: Self.time(2))
      try expectEqual(exchange.reopened, ["a"], "the downloads that wait again")
      let after = try await store.known("a")
      try expectEqual(after.phase, .waiting, "the phase")
      try expectEqual(after.request.metadata, [key: "new"], "the metadata")
    }
    await report.check(
      "no-outcome-of-an-earlier-request",
      "bytes and steps of an owner that has ended are not those of a changed request"
    ) {
      let (ledger, store) = try await filled(["a"])
      var held = try expectValue(try await store.leased().first, "nothing was leased")
      held.checkpoint = Checkpoint(ranges: ByteRangeSet([0..<100]), total: .known(100), isComplete: true)
      held.steps = StepLog(
        completed: ["VerifyChecksum"],
        artifact: StoredArtifact(kind: .file, path: "a", name: "a", size: 100, mediaType: nil, isReused: true))
      _ = try await store.save(held, [.checkpoint, .steps], at: Self.time(1))
      try expectEqual(try await store.known("a").steps, held.steps, "the saved log of the steps")
      let second = try await ledger.open()
      let url = try Self.request("x", host: "other.example").url
      _ = try await second.update("a", at: Self.time(2)) { $0.request.url = url }
      // A checkpoint of the owner, which does not know of the change yet.
      _ = try await store.save(held, [.checkpoint, .steps], at: Self.time(3))
      try await store.close()
      _ = try await second.reclaim(at: Self.time(4))
      let after = try await second.known("a")
      try expectEqual(after.phase, .waiting, "the phase")
      try expectEqual(after.request.url, url, "the URL")
      try expectEqual(after.steps, StepLog(), "the log of the steps")
      try expectEqual(after.checkpoint.isComplete, false, "whether the bytes count as complete")
      try expectEqual(after.checkpoint.ranges.byteCount < 100, true, "whether a byte is fetched again")
      try expectEqual(after.isOutdated, false, "whether the change is still ahead")
    }
    await report.check(
      "outcome-of-the-same-request", "a change that does not concern the file leaves the outcome of a run as it is"
    ) {
      let (ledger, store) = try await filled(["a"])
      let held = try expectValue(try await store.leased().first, "nothing was leased")
      let second = try await ledger.open()
      _ = try await second.update("a", at: Self.time(1)) { record in
        record.request.priority = .high
        record.request.metadata = ["new": "yes"]
        record.request.headers = ["X-New": "yes"]
      }
      let (_, exchange) = try await end(held, [.bytesComplete, .stepsComplete], in: store, at: Self.time(2))
      try expectEqual(exchange.reopened, [], "the downloads that wait again")
      try expectEqual(try await store.known("a").phase, .finished, "the phase")
    }
    await report.check(
      "destination-of-the-run", "the record of a finished download has the destination that its run has used"
    ) {
      let (ledger, store) = try await filled(["a"])
      let held = try expectValue(try await store.leased().first, "nothing was leased")
      var follower = try Self.request("b")
      follower.after = ["a"]
      _ = try await store.add([LedgerAddition(request: follower, arrival: 2)], at: Self.start)
      let second = try await ledger.open()
      _ = try await second.update("a", at: Self.time(1)) { record in
        record.request.destination.directory = "later"
        record.request.destination.name = "name"
      }
      let (_, exchange) = try await end(held, [.bytesComplete, .stepsComplete], in: store, at: Self.time(2))
      try expectEqual(exchange.reopened, [], "the downloads that wait again")
      let after = try await second.known("a")
      try expectEqual(after.phase, .finished, "the phase")
      try expectEqual(after.request.destination, held.request.destination, "the destination")
      try expectEqual(try await store.known("b").waitsFor, [], "what another download still waits for")
    }
    await report.check(
      "own-fresh-link", "work of an owner that has refreshed its link is for the fresh link, also after its end"
    ) {
      for isOwn in [true, false] {
        let (ledger, store) = try await filled(["a"])
        var held = try expectValue(try await store.leased().first, "nothing was leased")
        held.apply(.failedForNow)
        held.awaited = .link
        _ = try await store.save(held, [.state], at: Self.time(1))
        held = try expectValue(try await store.leased().first, "nothing was leased again")
        held.checkpoint = Checkpoint(ranges: ByteRangeSet([0..<100]), total: .known(100), isComplete: true)
        held.steps = StepLog(completed: ["VerifyChecksum"])
        let second = try await ledger.open()
        let url = try Self.request("x", host: "other.example").url
        _ = try await (isOwn ? store : second).update("a", at: Self.time(2)) { record in
          record.request.url = url
          record.awaited = nil
        }
        _ = try await store.save(held, [.checkpoint, .steps], at: Self.time(3))
        try await store.close()
        _ = try await second.reclaim(at: Self.time(4))
        let after = try await second.known("a")
        try expectEqual(after.request.url, url, "the URL")
        try expectEqual(after.steps, isOwn ? held.steps : StepLog(), "the log of the steps")
        try expectEqual(after.checkpoint.isComplete, isOwn, "whether the bytes count as complete")
      }
    }
    await report.check(
      "repair", "a finished download that gets a head start which its digests prove waits again, in the same change"
    ) {
      let (_, store) = try await filled(["a"])
      try await store.bring("a", to: .finished, Self.fill)
      let before = try await store.known("a")
      let present = try expectValue(before.steps.artifact, "the artifact")
      let headStart = DownloadRequest.HeadStart(file: "/a", count: 3, total: 3, proof: .digests)
      let saved = try await store.update("a", at: Self.time(5)) { record in
        record.steps.artifact?.modifiedAt = Self.time(4)
        record.request.headStart = headStart
      }
      let after = try await store.known("a")
      try expectEqual(saved, after, "the returned record")
      try expectEqual(after.phase, .waiting, "the phase")
      try expectEqual(after.request.headStart, headStart, "the head start")
      try expectEqual(after.steps, StepLog(), "the log of the steps")
      try expectEqual(after.earlierArtifact?.path, present.path, "the artifact that is replaced")
      try expectEqual(after.earlierArtifact?.modifiedAt, Self.time(4), "the time of that artifact")
      _ = try await store.update("a", at: Self.time(6)) { $0.request.expectedSize = .known(77) }
      try expectEqual(try await store.known("a").request.headStart, nil, "the head start of another file")
    }
    await report.check(
      "failure-of-an-earlier-request",
      "a download that fails waits again if what its work depends on was changed meanwhile"
    ) {
      let mirror = try Self.request("x", host: "mirror.example").url
      let changes: [(name: String, change: @Sendable (inout DownloadRequest) -> Void)] = [
        ("mirrors", { $0.mirrors = [mirror] }), ("maximum size", { $0.maximumSize = 12_345 }),
        ("steps", { $0.steps = .only(["one"]) }), ("mark of a server", { $0.isNamedByServer = true }),
        ("digests", { $0.expectedDigests = [FileDigest(.sha256, bytes: [UInt8](repeating: 1, count: 32))] }),
        ("pieces", { $0.pieces = PieceDigests(.sha256, length: 7, bytes: [UInt8](repeating: 1, count: 32)) }),
        ("size", { $0.expectedSize = .known(7) }),
      ]
      for (name, change) in changes {
        let (_, store) = try await filled(["a"])
        let held = try expectValue(try await store.leased().first, "nothing was leased")
        _ = try await store.update("a", at: Self.time(1)) { change(&$0.request) }
        let (_, exchange) = try await end(held, [.failedForGood], in: store, at: Self.time(2))
        try expectEqual(exchange.reopened, ["a"], "the downloads that wait again with other \(name)")
      }
    }
    await report.check(
      "steps-and-metadata", "steps that have completed run again with other metadata, unless the download has finished"
    ) {
      for (phase, isKept) in [(DownloadState.Phase.paused, false), (.failed, false), (.finished, true)] {
        let (_, store) = try await filled(["a"])
        let steps = StepLog(completed: ["one"])
        try await store.bring("a", to: phase) { $0.steps = steps }
        _ = try await store.update("a", at: Self.time(1)) { $0.request.metadata = ["key": "value"] }
        let after = try await store.known("a")
        try expectEqual(after.phase, phase, "the phase")
        try expectEqual(after.steps, isKept ? steps : StepLog(), "the log of the steps of a download that is \(phase)")
      }
    }
    await report.check(
      "new-url-of-complete-bytes", "complete bytes of an earlier URL do not count as complete for another one"
    ) {
      let (_, store) = try await filled(["a"])
      try await store.bring("a", to: .paused) { record in
        record.checkpoint = Checkpoint(ranges: ByteRangeSet([0..<100]), total: .known(100), isComplete: true)
        record.steps = StepLog(completed: ["one"])
      }
      let url = try Self.request("x", host: "other.example").url
      _ = try await store.update("a", at: Self.time(1)) { $0.request.url = url }
      let after = try await store.known("a")
      try expectEqual(after.phase, .paused, "the phase")
      try expectEqual(after.checkpoint.ranges, ByteRangeSet([0..<99]), "the bytes")
      try expect(!after.checkpoint.isComplete, "the transfer counts as complete")
      try expectEqual(after.steps, StepLog(), "the log of the steps")
    }
  }
}
