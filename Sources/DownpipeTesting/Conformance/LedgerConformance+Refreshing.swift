@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  /// A store with a finished download whose file is fresh until a time, and its record.
  private func finished(
    _ refresh: DownloadRequest.Refresh, freshUntil end: Date? = nil
  ) async throws -> (ledger: any Ledger, store: any LedgerStore, record: DownloadRecord) {
    let (ledger, store) = try await opened()
    var addition = try Self.addition("a", order: 1)
    addition.request.refresh = refresh
    _ = try await store.add([addition], at: Self.start)
    try await store.bring("a", to: .finished) { record in
      Self.fill(&record)
      record.checkpoint.freshUntil = end
    }
    return (ledger, store, try await store.known("a"))
  }

  /// Checks that a finished download is asked about, and keeps what is known of its file.
  private func expectAsking(_ after: DownloadRecord, since before: DownloadRecord, at now: Date) throws {
    var expected = before
    expected.apply(.refresh)
    expected.rank = after.rank
    expected.updatedAt = now
    try expectEqual(after, expected, "the record")
    try expectEqual(after.phase, .waiting, "the phase")
    try expectEqual(after.refreshing, .asking, "how far the download is refreshed")
    try expectEqual(after.checkpoint, before.checkpoint, "the checkpoint of the published file")
    try expectEqual(after.steps, before.steps, "the steps of the published file")
    try expectEqual(after.earlierArtifact, before.steps.artifact, "the artifact that may be replaced")
  }

  func checkRefreshing(_ report: ConformanceReport) async {
    await report.check("refresh-added", "a finished download that is added again with `ifChanged` is refreshed") {
      let (ledger, _, before) = try await finished(.ifChanged)
      let second = try await ledger.open()
      try await second.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival + 7) })
      let outcome = try await second.add([LedgerAddition(request: before.request, arrival: 1)], at: Self.time(5))
      try expectEqual(outcome.map(\.isNew), [true], "isNew of the outcome")
      let after = try await second.known("a")
      try expectEqual(outcome.map(\.record), [after], "the outcome's record, compared with the one in the ledger,")
      try expectAsking(after, since: before, at: Self.time(5))
      try expectEqual(after.rank, Rank().ascending(after.arrival + 7), "the rank")
      try expectEqual(try await second.counts(.all), [.waiting: 1], "the counts")
      // It waits now, so that another addition changes nothing.
      let again = try await second.add([LedgerAddition(request: before.request, arrival: 1)], at: Self.time(6))
      try expectEqual(again.map(\.isNew), [false], "isNew of the second outcome")
      try expectEqual(try await second.known("a"), after, "the record after the second addition")
      try expectEqual(
        try await second.leased(scope: .own).map(\.id), ["a"], "the downloads that the second store leases")
    }
    let fresh: [(refresh: DownloadRequest.Refresh, end: Date?, isAsked: Bool)] = [
      (.never, nil, false), (.never, Self.time(4), false), (.ifChanged, Self.time(6), true), (.whenStale, nil, true),
      (.whenStale, Self.time(4), true), (.whenStale, Self.time(5), true), (.whenStale, Self.time(5.001), false),
      (.whenStale, Self.time(300 * 86_400), false), (.whenStale, Self.time(400 * 86_400), true),
    ]
    for (number, row) in fresh.enumerated() {
      await report.check(
        "refresh-\(row.refresh.rawValue)-\(number)",
        "a finished download is asked about unless its file is fresh, and otherwise nothing is written"
      ) {
        let (_, store, before) = try await finished(row.refresh, freshUntil: row.end)
        let outcome = try await store.add([LedgerAddition(request: before.request, arrival: 1)], at: Self.time(5))
        let after = try await store.known("a")
        try expectEqual(outcome.map(\.isNew), [row.isAsked], "isNew of the outcome")
        if row.isAsked {
          try expectAsking(after, since: before, at: Self.time(5))
        } else {
          try expectEqual(after, before, "the record")
        }
      }
    }
    await report.check("refresh-kept", "adding with keep, and an update, do not refresh a finished download") {
      let (_, store, before) = try await finished(.never)
      var request = before.request
      request.refresh = .ifChanged
      var addition = LedgerAddition(request: request, arrival: 1, ifKnown: .keep)
      _ = try await store.add([addition], at: Self.time(5))
      try expectEqual(try await store.known("a"), before, "the record after it was kept")
      _ = try await store.update("a", at: Self.time(5)) { $0.request.refresh = .ifChanged }
      try expectEqual(try await store.known("a").phase, .finished, "the phase after the update")
      // The request as it was added says never; the update counts for additions that say the same as before.
      addition = LedgerAddition(request: before.request, arrival: 1)
      _ = try await store.add([addition], at: Self.time(6))
      try expectEqual(try await store.known("a").phase, .waiting, "the phase after the addition")
    }
    for isMatching in [true, false] {
      await report.check(
        "refresh-command\(isMatching ? "-all" : "")",
        "the refresh of finished downloads keeps what is known of the file"
      ) {
        let (_, store, before) = try await finished(.never)
        _ = try await store.add([try Self.addition("b", order: 2)], at: Self.start)
        try await store.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival + 7) })
        let result = try await store.transition(isMatching ? .all : .ids(["a", "b"]), .refresh, at: Self.time(5))
        try expectEqual(result.ids, ["a"], "the result")
        try expectEqual(result.count, 1, "the number of changed downloads")
        let after = try await store.known("a")
        try expectAsking(after, since: before, at: Self.time(5))
        try expectEqual(after.rank, Rank().ascending(after.arrival + 7), "the rank")
        try expectEqual(try await store.counts(.all), [.waiting: 2], "the counts")
      }
    }
    await report.check("refresh-unchanged", "a download whose file has not changed is finished as it was") {
      let (_, store, before) = try await finished(.ifChanged, freshUntil: Self.time(1))
      _ = try await store.transition(.ids(["a"]), .refresh, at: Self.time(5))
      var held = try expectValue(try await store.leased().first, "nothing was leased")
      try expectEqual(held.checkpoint, before.checkpoint, "the checkpoint of the leased record")
      held.checkpoint.freshUntil = Self.time(50)
      held.apply(.bytesComplete)
      held.apply(.stepsComplete)
      _ = try await store.exchange(
        [LedgerSave(held, [.state, .checkpoint, .steps])], leasing: nil, at: Self.time(6))
      let after = try await store.known("a")
      try expectEqual(after.phase, .finished, "the phase")
      try expectEqual(after.refreshing, nil, "how far the download is refreshed")
      try expectEqual(after.earlierArtifact, nil, "the artifact to replace")
      try expectEqual(after.steps, before.steps, "the steps")
      try expectEqual(after.bytesFetched, before.bytesFetched, "the bytes received over the network")
      try expectEqual(after.checkpoint.freshUntil, Self.time(50), "the end of its freshness")
      try expectEqual(after.updatedAt, Self.time(6), "the time of the last change")
    }
    for (name, event) in [("pause", Lifecycle.Event.pause), ("cancel", .cancel), ("restart", .restart)] {
      await report.check("refresh-\(name)", "the artifact of a download that is being refreshed is known afterwards") {
        let (_, store, before) = try await finished(.never)
        _ = try await store.transition(.ids(["a"]), .refresh, at: Self.time(5))
        _ = try await store.transition(.all, event, at: Self.time(6))
        let after = try await store.known("a")
        try expectEqual(after.earlierArtifact, before.steps.artifact, "the artifact")
        try expectEqual(after.refreshing, event == .pause ? .asking : nil, "how far the download is refreshed")
        try expectEqual(
          after.checkpoint,
          event == .pause ? before.checkpoint : event == .restart ? before.checkpoint.facts : Checkpoint(),
          "the checkpoint")
      }
    }
    await report.check(
      "refresh-another-file", "a download that is being refreshed starts again if its request asks for another file"
    ) {
      let (_, store, before) = try await finished(.never)
      _ = try await store.transition(.ids(["a"]), .refresh, at: Self.time(5))
      let url = try Self.request("x", host: "other.example").url
      _ = try await store.update("a", at: Self.time(6)) { $0.request.url = url }
      let after = try await store.known("a")
      try expectEqual(after.phase, .waiting, "the phase")
      try expectEqual(after.refreshing, .fetching, "how far the download is refreshed")
      try expectEqual(after.checkpoint, Checkpoint(), "the checkpoint")
      try expectEqual(after.steps, StepLog(), "the steps")
      try expectEqual(after.earlierArtifact, before.steps.artifact, "the artifact that is replaced")
    }
    await report.check(
      "refresh-ended-owner", "a download whose owner has ended while it was refreshed is asked about again"
    ) {
      let (ledger, store, before) = try await finished(.never)
      _ = try await store.transition(.ids(["a"]), .refresh, at: Self.time(5))
      try expectEqual(try await store.leased().count, 1, "the number of leased downloads")
      try await store.close()
      let second = try await ledger.open()
      _ = try await second.reclaim(at: Self.time(6))
      let after = try await second.known("a")
      try expectEqual(after.phase, .waiting, "the phase")
      try expectEqual(after.refreshing, .asking, "how far the download is refreshed")
      try expectEqual(after.checkpoint, before.checkpoint, "the checkpoint")
      try expectEqual(after.steps, before.steps, "the steps")
    }
  }
}
