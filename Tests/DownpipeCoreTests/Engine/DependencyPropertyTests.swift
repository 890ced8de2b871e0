@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// For any graph of dependencies: no download starts before all of its dependencies have finished, every download of a
/// graph without cycles finishes, and no cycle is accepted.
@Suite(.endsHangs)
struct DependencyPropertyTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 3000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private static func id(_ number: Int) -> DownloadID { DownloadID("d\(number)") }

  private func request(_ number: Int, after: Set<Int>) -> DownloadRequest {
    DownloadRequest(
      url.appending(path: "\(number)"), id: Self.id(number),
      destination: .init(name: "\(number)")
    ).with(\.after, Set(after.map(Self.id)))
  }

  /// The first downloads that started before a dependency had finished.
  private func violations(_ events: [DownloadEvent], _ graph: [Set<Int>]) -> [String] {
    var finished: Set<DownloadID> = []
    var violations: [String] = []
    for event in events {
      guard case .state(let state) = event.kind, let number = Int(event.id.rawValue.dropFirst()) else { continue }
      if state.phase == .finished { finished.insert(event.id) }
      guard state == .transferring else { continue }
      let missing = Set(graph[number].map(Self.id)).subtracting(finished)
      if !missing.isEmpty { violations.append("\(event.id) started before \(missing)") }
    }
    return violations
  }

  @Test("graphs without cycles", arguments: UInt64(0)..<20)
  func everyDownloadFinishesInOrder(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let count = Int.random(in: 5...40, using: &generator)
    // The order in which the downloads may run is hidden from the order in which they are added.
    let order = (0..<count).shuffled(using: &generator)
    var graph = [Set<Int>](repeating: [], count: count)
    for (place, number) in order.enumerated() where place > 0 {
      for _ in 0..<Int.random(in: 0...3, using: &generator) {
        graph[number].insert(order[Int.random(in: 0..<place, using: &generator)])
      }
    }
    let observer = RecordingObserver()
    let source = DrivenSource(bytes)
    let downloader = try await Downloader(options: options) {
      source
      limit(Int.random(in: 1...6, using: &generator))
      FakeRetryPolicy { $0.attempts % 3 == 0 ? .giveUp : .resume(after: .seconds(1)) }
      observer
      storage
      ledger
    }
    var waiting = Array(0..<count).shuffled(using: &generator)
    while !waiting.isEmpty || Bool.random(using: &generator) {
      let id = Self.id(Int.random(in: 0..<count, using: &generator))
      switch Int.random(in: 0..<12, using: &generator) {
      case 0..<3:
        let some = (0..<min(waiting.count, Int.random(in: 1...5, using: &generator))).map { _ in waiting.removeLast() }
        try await downloader.add(contentsOf: some.map { request($0, after: graph[$0]) })
      case 3: _ = try? await downloader.pause(id)
      case 4: _ = try? await downloader.resume(id)
      case 5: _ = try? await downloader.start(id)
      case 6: source.decide(.fail(DownloadError(.network, "cut")))
      case 7...9: source.decide(.finish)
      case 10: time.advance(by: .seconds(1))
      default: try await settle(downloader)
      }
    }
    source.finishAll()
    while true {
      try await downloader.resumeAll()
      try await advancing { try await downloader.waitUntilIdle() }
      if try await downloader.counts() == [.finished: count] { break }
      let counts = try await downloader.counts()
      // A download that has failed during its last attempt is resumed; no other one may be left.
      try #require(counts[.failed] ?? 0 > 0, "seed \(seed): \(counts)")
    }
    #expect(try await downloader.counts() == [.finished: count])
    await downloader.shutdown()
    let violations = violations(observer.events, graph)
    #expect(violations.isEmpty, "seed \(seed): \(violations)")
  }

  @Test("random changes of dependencies", arguments: UInt64(0)..<20)
  func noCycleIsAccepted(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let store = try await ledger.open()
    var model: [DownloadID: Set<DownloadID>] = [:]
    func isInCycle(_ id: DownloadID, _ graph: [DownloadID: Set<DownloadID>]) -> Bool {
      var seen: Set<DownloadID> = []
      var next = Array(graph[id] ?? [])
      while let one = next.popLast() {
        if one == id { return true }
        if seen.insert(one).inserted { next += graph[one] ?? [] }
      }
      return false
    }
    var refused = 0
    for step in 0..<200 {
      var wish = model
      var requests: [DownloadRequest] = []
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let number = Int.random(in: 0..<15, using: &generator)
        let others = Int.random(in: 0...2, using: &generator)
        let after = (0..<others).map { _ in Int.random(in: 0..<15, using: &generator) }
        guard !requests.contains(where: { $0.id == Self.id(number) }) else { continue }
        requests.append(request(number, after: Set(after)))
        // An addition takes over what differs from the previous addition.
        let known = try await store.record(Self.id(number))
        let base = known.map { ($0.added ?? $0.request).after }
        if base != requests.last?.after { wish[Self.id(number)] = Set(after.map(Self.id)) }
      }
      let isUpdate = requests.count == 1 && model[requests[0].id] != nil
      if isUpdate { wish[requests[0].id] = requests[0].after }
      let isValid = wish.keys.allSatisfy { !isInCycle($0, wish) }
      do {
        if isUpdate {
          let after = requests[0].after
          _ = try await store.update(requests[0].id, at: time.date) { $0.request.after = after }
        } else {
          _ = try await store.add(requests.map { LedgerAddition(request: $0, arrival: Int64(step)) }, at: time.date)
        }
        #expect(isValid, "seed \(seed), step \(step): \(requests.map { "\($0.id) after \($0.after)" })")
        model = wish
      } catch let error as DownloadError {
        #expect(error.code == .invalidRequest && !isValid, "seed \(seed), step \(step): \(error.message)")
        refused += 1
      }
      let found = try await store.records(DownloadQuery())
      #expect(Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0.request.after) }) == model)
    }
    #expect(refused > 0)
    try await store.close()
  }
}
