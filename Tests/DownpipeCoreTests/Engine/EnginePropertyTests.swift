import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The engine keeps its promises for any sequence of commands.
@Suite(.endsHangs)
struct EnginePropertyTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 3000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let ids = (0..<12).map { DownloadID("d\($0)") }

  private func limits(_ count: Int, perHost: Int) -> FakeAdmissionPolicy {
    FakeAdmissionPolicy { candidate, running in
      if running.total >= count { return .full("\(count) of \(count)") }
      return running.perHost[candidate.host, default: 0] < perHost ? .admitted : .hostFull("\(perHost)")
    }
  }

  private func request(_ id: DownloadID, _ generator: inout SeededGenerator) -> DownloadRequest {
    let number = Int(id.rawValue.dropFirst()) ?? 0
    return DownloadRequest(
      URL(string: "https://host\(number % 3).example/\(id.rawValue)") ?? url, id: id,
      tags: number % 2 == 0 ? ["even"] : [], destination: .init(name: id.rawValue))
  }

  /// Runs a random command and returns its description.
  private func step(
    _ downloader: Downloader, _ source: DrivenSource, _ gate: FakeGate, _ generator: inout SeededGenerator
  ) async throws -> String {
    let id = ids[Int.random(in: 0..<ids.count, using: &generator)]
    let filters: [DownloadFilter] = [
      .all, .all, .tag("even"), .tag("even"), .host("host1.example"), .phases([.waiting]), .phases([.transferring]),
      DownloadFilter(phases: [.paused, .failed], tag: "even"), .intent(.silent),
    ]
    let filter = filters[Int.random(in: 0..<filters.count, using: &generator)]
    func tryCommand(_ command: () async throws -> Bool) async throws -> String {
      do { return try await command() ? "" : " (nothing)" } catch let error as DownloadError
        where error.code == .invalidRequest
      { return " (unknown)" }
    }
    switch Int.random(in: 0..<48, using: &generator) {
    case 0..<10:
      source.permit(id)
      try await downloader.add(request(id, &generator))
      return "add \(id)"
    case 10..<13:
      let result = try await tryCommand { try await downloader.pause(id) }
      if try await downloader.status(of: id)?.state == .paused { source.forbid(id) }
      return "pause \(id)" + result
    case 13..<16:
      source.permit(id)
      return "resume \(id)" + (try await tryCommand { try await downloader.resume(id) })
    case 16: return "cancel \(id)" + (try await tryCommand { try await downloader.cancel(id) })
    case 17:
      let isThere = try await downloader.remove(id)
      source.permit(id)
      return "remove \(id) \(isThere)"
    case 18: return "pauseAll \(filter) \(try await downloader.pauseAll(filter))"
    case 19:
      source.permitAll()
      return "resumeAll \(filter) \(try await downloader.resumeAll(filter))"
    case 20: return "cancelAll \(filter) \(try await downloader.cancelAll(filter))"
    case 21: return "removeAll \(filter) \(try await downloader.removeAll(filter))"
    case 22:
      await downloader.setSuspended(true)
      if !source.active.isEmpty { Issue.record("\(source.active) run although all are suspended") }
      return "suspend"
    case 23..<25:
      await downloader.setSuspended(false)
      return "unsuspend"
    case 25..<27:
      let (count, perHost) = (Int.random(in: 1...5, using: &generator), Int.random(in: 1...3, using: &generator))
      // A run that begins while the limits change may obey the old limits or the new ones.
      source.allow(5, perHost: 3)
      await downloader.replace(limits(count, perHost: perHost))
      source.allow(count, perHost: perHost)
      return "limits \(count) \(perHost)"
    case 27:
      gate.close("shut")
      return "close"
    case 28..<30:
      gate.open()
      return "open"
    case 30..<33:
      source.decide(.fail(DownloadError(.network, "cut")))
      return "fail"
    case 33..<37:
      source.decide(.finish)
      return "finish"
    case 40..<42:
      source.permit(id)
      return "restart \(id)" + (try await tryCommand { try await downloader.restart(id) })
    case 42:
      source.permitAll()
      return "resumeAll together \(filter) \(try await downloader.resumeAll(filter, only: .pausedTogether))"
    case 43..<45:
      let new = request(id, &generator)
      return "update \(id)"
        + (try await tryCommand {
          _ = try await downloader.update(id) {
            ($0.priority, $0.tags, $0.metadata) = (new.priority, new.tags, ["a": "b"])
          }
          return true
        })
    case 45:
      source.permitAll()
      return "restartAll \(filter) \(try await downloader.restartAll(filter))"
    case 46:
      let priority = Priority(Int16.random(in: 0..<3, using: &generator))
      return "updateAll \(filter) \(try await downloader.updateAll(filter) { $0.priority = priority })"
    case 37:
      time.advance(by: .seconds(1))
      return "a second"
    default:
      try await settle(downloader)
      return "settle"
    }
  }

  @Test("random commands", arguments: UInt64(0)..<30)
  func promisesHold(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let (source, gate) = (DrivenSource(bytes), FakeGate())
    source.allow(5, perHost: 3)
    let retry = FakeRetryPolicy { failure in
      switch failure.attempts % 3 {
      case 0: .giveUp
      case 1: .resume(after: .zero)
      default: .restart(after: .seconds(1))
      }
    }
    var options = options
    options.minimumSpeed = nil
    let downloader = try await Downloader(options: options) {
      source
      gate
      limits(5, perHost: 3)
      retry
      storage
      ledger
    }
    var log: [String] = []
    for _ in 0..<120 {
      log.append(try await step(downloader, source, gate, &generator))
      if !source.violations.isEmpty { break }
    }
    #expect(source.violations.isEmpty, "seed \(seed): \(log.joined(separator: ", "))")

    // Everything is released and ends.
    source.permitAll()
    source.finishAll()
    gate.open()
    await downloader.setSuspended(false)
    source.allow(5, perHost: 3)
    await downloader.replace(limits(5, perHost: 3))
    try await downloader.resumeAll()
    try await advancing { try await downloader.waitUntilIdle() }
    let last = try await downloader.add(DownloadRequest(url, id: "last", destination: .init(name: "last")))
    #expect(storage.bytes(of: try await last.value) == bytes)
    try await downloader.waitUntilIdle()

    let statuses = try await downloader.statuses()
    let states = "seed \(seed): \(statuses.map { "\($0.id) \($0.state.phase)" }), after \(log.joined(separator: ", "))"
    #expect(statuses.allSatisfy { [.finished, .failed, .cancelled].contains($0.state.phase) }, "\(states)")
    for status in statuses where status.state.phase == .finished {
      #expect(storage.published[status.id.rawValue] == bytes, "\(states)")
    }
    #expect(source.active.isEmpty && source.violations.isEmpty, "\(states) \(source.violations)")
    #expect(storage.openPartials == 0, "\(states)")
    let failed = Set(statuses.filter { $0.state.phase == .failed }.map(\.id))
    #expect(storage.partials.keys.allSatisfy { failed.contains($0.id) }, "\(storage.partials.keys) \(states)")
    await downloader.shutdown()
    #expect(storage.openPartials == 0)
  }
}
