@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  /// An addition of a download that waits for others.
  private static func addition(
    _ id: DownloadID, _ order: Int64, after: Set<DownloadID>, tags: Set<String> = []
  ) throws -> LedgerAddition {
    var addition = try addition(id, order: order, tags: tags)
    addition.request.after = after
    return addition
  }

  /// A new ledger with the downloads `a`, without dependencies, and `b`, which waits for `a` and ranks before it.
  private func pair() async throws -> (ledger: any Ledger, store: any LedgerStore) {
    let (ledger, store) = try await opened()
    _ = try await store.add(
      [try Self.addition("b", 1, after: ["a"]), try Self.addition("a", order: 2)], at: Self.start)
    return (ledger, store)
  }

  func checkDependencies(_ report: ConformanceReport) async {
    await report.check("after-holds", "a download is not leased before those have finished that it waits for") {
      let (_, store) = try await pair()
      try expectEqual(try await store.known("b").waitsFor, ["a"], "what the new download waits for")
      try expectEqual(try await store.known("b").phase, .waiting, "its phase")
      try expectEqual(try await store.leased().map(\.id), ["a"], "the downloads leased")
      try expectEqual(try await store.leased(scope: .ids(["b"])).count, 0, "the number leased by id")
      var record = try await store.known("a")
      record.phase = .processing
      try expect(try await store.save(record, .state, at: Self.start), "the owner's save was refused")
      try expectEqual(try await store.leased().count, 0, "the number leased while the other one is processed")
      record.phase = .finished
      try expect(try await store.save(record, .state, at: Self.time(5)), "the owner's save was refused")
      try expectEqual(try await store.known("b").waitsFor, [], "what it waits for when the other one has finished")
      try expectEqual(try await store.known("b").updatedAt, Self.time(5), "the time of this change")
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased afterwards")
    }
    await report.check("after-exchange", "a download is leased in the exchange that saves its last dependency") {
      let (_, store) = try await pair()
      _ = try await store.add([try Self.addition("c", 3, after: ["a", "b"])], at: Self.start)
      for (id, next) in [("a", ["b"]), ("b", ["c"]), ("c", [])] as [(DownloadID, [DownloadID])] {
        if id == "a" { _ = try await store.leased() }
        var record = try await store.known(id)
        record.phase = .finished
        let request = LeaseRequest(now: Self.start, until: Self.time(60)) { _ in .take }
        let exchange = try await store.exchange([LedgerSave(record, .state)], leasing: request, at: Self.start)
        try expectEqual(exchange.leased.map(\.id), next, "the downloads leased when “\(id)” finished")
      }
    }
    await report.check("after-unfinished", "a download that ends without finishing releases no other one") {
      for phase in [DownloadState.Phase.failed, .paused, .cancelled, .waiting] {
        let (_, store) = try await pair()
        try await store.bring("a", to: phase) { if phase == .waiting { $0.notBefore = Self.time(10) } }
        try expectEqual(try await store.leased().count, 0, "the number leased while the other one is \(phase)")
        try expectEqual(try await store.known("b").waitsFor, ["a"], "what the download waits for")
      }
    }
    await report.check("after-finished", "a dependency that has finished stays met when it starts again") {
      let (_, store) = try await filled(["a"])
      let artifact = StoredArtifact(kind: .file, path: "a", name: "a", size: 1, mediaType: nil)
      try await store.bring("a", to: .finished) { $0.steps.artifact = artifact }
      let added = try await store.add([try Self.addition("b", 1, after: ["a"])], at: Self.start)
      try expectEqual(added.map(\.record.waitsFor), [[]], "what a download waits for that is added afterwards")
      var again = try Self.addition("a", order: 2)
      again.lost = artifact
      _ = try await store.add([again], at: Self.start)
      try expectEqual(try await store.known("a").phase, .waiting, "the phase of the other one when its file is lost")
      _ = try await store.update("b", at: Self.start) { $0.request.priority = .high }
      try expectEqual(try await store.leased(["b"]).map(\.id), ["b"], "the downloads leased")
      let later = try await store.add([try Self.addition("c", 3, after: ["a"])], at: Self.start)
      try expectEqual(later.map(\.record.waitsFor), [["a"]], "what a download waits for that is added now")
    }
    await report.check("after-unknown", "a download waits for one that was removed or not yet added") {
      let (_, store) = try await opened()
      _ = try await store.add([try Self.addition("b", 1, after: ["a"])], at: Self.start)
      try expectEqual(try await store.leased().count, 0, "the number leased before the other one is added")
      _ = try await store.add([try Self.addition("a", order: 2)], at: Self.start)
      _ = try await store.remove(.ids(["a"]))
      try expectEqual(try await store.leased().count, 0, "the number leased after the other one was removed")
      _ = try await store.add([try Self.addition("a", order: 2)], at: Self.start)
      try await store.bring("a", to: .finished)
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased when it has finished")
    }
    await report.check("after-resting", "a download is released in any phase, and pausing does not release it") {
      let (_, store) = try await pair()
      _ = try await store.transition(.ids(["b"]), .pause, at: Self.start)
      _ = try await store.transition(.ids(["b"]), .resume, at: Self.start)
      try expectEqual(try await store.leased().map(\.id), ["a"], "the downloads leased after a pause")
      _ = try await store.transition(.all, .pauseAll, at: Self.start)
      var record = try await store.known("a")
      record.phase = .finished
      try expect(try await store.save(record, .state, at: Self.start), "the owner's save was refused")
      try expectEqual(try await store.known("b").phase, .paused, "the phase of the paused download")
      try expectEqual(try await store.leased().count, 0, "the number of paused downloads leased")
      _ = try await store.transition(.all, .resume, at: Self.start)
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased when it is resumed")
    }
    await report.check("after-due", "a download that waits for another one has no due time of interest") {
      let (_, store) = try await opened()
      _ = try await store.add([try Self.addition("b", 1, after: [])], at: Self.start)
      try await store.bring("b", to: .waiting) { $0.notBefore = Self.time(10) }
      _ = try await store.update("b", at: Self.start) { $0.request.after = ["a"] }
      try expectEqual(try await store.nextDue(after: Self.start), nil, "the next due time")
      _ = try await store.add([try Self.addition("a", order: 2)], at: Self.start)
      try expectEqual(try await store.leased(at: Self.time(20)).map(\.id), ["a"], "the downloads leased when it is due")
      _ = try await store.add([try Self.addition("c", 1, after: [])], at: Self.start)
      try await store.bring("c", to: .waiting) { $0.notBefore = Self.time(30) }
      _ = try await store.update("c", at: Self.start) { $0.request.after = ["a"] }
      var record = try await store.known("a")
      record.phase = .finished
      let exchange = try await store.exchange([LedgerSave(record, .state)], leasing: nil, at: Self.time(20))
      try expectEqual(exchange.saved, [true], "whether the owner's save succeeded")
      try expect(exchange.mayHaveReleasedDelayed, "the exchange does not say that there is a new due time")
      try expectEqual(try await store.nextDue(after: Self.time(20)), Self.time(30), "the next due time when released")
      try expectEqual(try await store.leased(at: Self.time(20)).map(\.id), ["b"], "the downloads leased when released")
    }
    await checkChangedDependencies(report)
    await checkCycles(report)
    await checkSharedDependencies(report)
  }

  private func checkChangedDependencies(_ report: ConformanceReport) async {
    await report.check("after-changes", "dependencies can be changed, by an update and by adding again") {
      let (_, store) = try await pair()
      _ = try await store.update("b", at: Self.time(1)) { $0.request.after = ["a", "c"] }
      try expectEqual(try await store.known("b").waitsFor, ["a", "c"], "what it waits for after an update")
      _ = try await store.add([try Self.addition("b", 1, after: ["a"])], at: Self.time(2))
      try expectEqual(
        try await store.known("b").request.after, ["a", "c"], "the dependencies after an addition that changes nothing")
      _ = try await store.add([try Self.addition("b", 1, after: ["c"])], at: Self.time(3))
      try expectEqual(try await store.known("b").waitsFor, ["c"], "what it waits for after an addition")
      try await store.bring("a", to: .finished)
      try expectEqual(try await store.leased().count, 0, "the number leased when the previous dependency has finished")
      _ = try await store.update("b", at: Self.time(4)) { $0.request.after = ["a"] }
      try expectEqual(try await store.known("b").waitsFor, [], "what it waits for if that has finished")
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased")
      // A run is not stopped by a new dependency, but its download waits for it afterwards.
      _ = try await store.update("b", at: Self.time(5)) { $0.request.after = ["c"] }
      var record = try await store.known("b")
      try expectEqual(record.phase, .transferring, "the phase of a download that gets a dependency during its run")
      record.phase = .waiting
      try expect(try await store.save(record, .state, at: Self.time(6)), "the owner's save was refused")
      try expectEqual(try await store.leased(at: Self.time(6)).count, 0, "the number leased after that run")
    }
    await report.check("is-busy", "isBusy ignores downloads that wait for others") {
      let (_, store) = try await opened()
      try expectEqual(try await store.isBusy(), false, "isBusy of an empty ledger")
      _ = try await store.add([try Self.addition("b", 1, after: ["a"])], at: Self.start)
      try expectEqual(try await store.isBusy(), false, "isBusy while a download waits for one that does not exist")
      _ = try await store.add([try Self.addition("a", order: 2)], at: Self.start)
      try expectEqual(try await store.isBusy(), true, "isBusy while a download waits for its turn")
      _ = try await store.leased()
      try expectEqual(try await store.isBusy(), true, "isBusy while a download is active")
      var record = try await store.known("a")
      (record.phase, record.notBefore) = (.waiting, Self.time(10))
      _ = try await store.save(record, .state, at: Self.start)
      try expectEqual(try await store.isBusy(), true, "isBusy while a download waits for a time")
      _ = try await store.transition(.ids(["a"]), .pause, at: Self.start)
      try expectEqual(try await store.isBusy(), false, "isBusy while the dependency is paused")
    }
  }

  private func checkCycles(_ report: ConformanceReport) async {
    await report.check("after-cycle", "downloads that would wait for each other are refused, and nothing changes") {
      let (_, store) = try await pair()
      _ = try await store.add([try Self.addition("c", 3, after: ["b"])], at: Self.start)
      let before = try await store.records(DownloadQuery())
      func expectRefusal(_ what: String, _ names: [String], _ change: () async throws -> Void) async throws {
        do { try await change() } catch let error as DownloadError where error.code == .invalidRequest {
          for name in names { try expect(error.message.contains(name), "“\(error.message)” does not name \(name)") }
          let after = try await store.records(DownloadQuery())
          return try expectEqual(after, before, "the records after \(what) was refused,")
        }
        throw Deviation("\(what) was not refused")
      }
      let names = ["“a” waits for “c”", "which waits for “b”", "which waits for “a”"]
      try await expectRefusal("an addition with a cycle", names) {
        let additions = [
          try Self.addition("new", 9, after: []), try Self.addition("a", 2, after: ["c"]),
          try Self.addition("newer", 9, after: ["new"]),
        ]
        _ = try await store.add(additions, at: Self.time(1))
      }
      try await expectRefusal("an update with a cycle", names) {
        _ = try await store.update("a", at: Self.time(1)) { $0.request.after = ["c"] }
      }
      try await expectRefusal("a download that waits for itself", ["“d” waits for “d”"]) {
        _ = try await store.add([try Self.addition("d", 4, after: ["d"])], at: Self.time(1))
      }
      try await expectRefusal("a cycle within one addition", ["“x” waits for “y”"]) {
        let additions = [try Self.addition("x", 5, after: ["y"]), try Self.addition("y", 6, after: ["x"])]
        _ = try await store.add(additions, at: Self.time(1))
      }
      // The same downloads without a cycle are accepted, also where an intermediate state would have one.
      _ = try await store.add(
        [
          try Self.addition("a", 2, after: ["c"]), try Self.addition("b", 1, after: []),
          try Self.addition("d", 4, after: ["a", "b", "c", "nowhere"]),
        ], at: Self.time(1))
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased")
    }
    await report.check("after-bulk", "dependencies of many downloads are changed together, and judged at the end") {
      let (_, store) = try await pair()
      let chains: [([DownloadID: Set<DownloadID>], isValid: Bool)] = [
        (["a": ["b"], "b": []], true), (["a": ["b"], "b": ["a"]], false), (["a": [], "b": ["a"]], true),
      ]
      for (chain, isValid) in chains {
        let before = try await store.records(DownloadQuery())
        do {
          _ = try await store.update(.all, at: Self.time(1)) { $0.request.after = chain[$0.id] ?? [] }
          try expect(isValid, "a bulk update with a cycle was not refused")
          try expectEqual(try await store.known("a").waitsFor, chain["a"], "what “a” waits for")
          try expectEqual(try await store.known("b").waitsFor, chain["b"], "what “b” waits for")
        } catch let error as DownloadError {
          try expect(!isValid && error.code == .invalidRequest, "a bulk update was refused: \(error.message)")
          try expectEqual(try await store.records(DownloadQuery()), before, "the records after a refusal")
        }
      }
      try expectEqual(try await store.leased().map(\.id), ["a"], "the downloads leased")
    }
    await report.check("after-met-cycle", "a dependency that is met is no part of a cycle") {
      let (_, store) = try await pair()
      try await store.bring("a", to: .finished)
      _ = try await store.update("a", at: Self.time(1)) { $0.request.after = ["b"] }
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased")
    }
  }

  private func checkSharedDependencies(_ report: ConformanceReport) async {
    await report.check("after-others", "openings release each other's downloads, which stay in their scope") {
      let (ledger, first) = try await pair()
      let second = try await ledger.open()
      let changes = try await {
        try await second.bring("a", to: .finished)
        return try await second.known("b").waitsFor
      }()
      try expectEqual(changes, [], "what a download waits for after another opening has finished the other one")
      try expectEqual(try await second.leased(scope: .own).count, 0, "the number in the scope of the other opening")
      try expectEqual(try await first.leased(scope: .own).map(\.id), ["b"], "the downloads in the own scope")
    }
    await report.check("after-race", "two openings cannot make a cycle together") {
      for _ in 0..<10 {
        let (ledger, first) = try await filled(["a", "b"])
        let second = try await ledger.open()
        async let one: Bool = first.isUpdated("a", after: ["b"])
        async let other: Bool = second.isUpdated("b", after: ["a"])
        let accepted = try await [one, other].count { $0 }
        try expectEqual(accepted, 1, "the number of accepted changes")
        try expectEqual(try await first.leased().count, 1, "the number of downloads that can be leased")
      }
    }
    await report.check("after-restart", "dependencies are kept when the ledger is opened again") {
      let (ledger, store) = try await pair()
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.known("b").waitsFor, ["a"], "what the download waits for")
      try await second.bring("a", to: .finished)
      try await second.close()
      let third = try await ledger.open()
      try expectEqual(try await third.leased().map(\.id), ["b"], "the downloads leased")
    }
  }
}

extension LedgerStore {
  /// Whether the ledger accepts new dependencies.
  fileprivate func isUpdated(_ id: DownloadID, after: Set<DownloadID>) async throws -> Bool {
    do {
      _ = try await update(id, at: LedgerConformance.start) { $0.request.after = after }
      return true
    } catch let error as DownloadError where error.code == .invalidRequest { return false }
  }
}
