@_spi(Ledger) import DownpipeCore
import Foundation

// The properties that are checked when the engine has nothing left to do, and at the end.
extension QueueSimulation {
  /// Waits until the engine has nothing left to do, and checks that each download that may run runs.
  func settle() async throws {
    let clock = ContinuousClock()
    var (looks, spent, last) = (0, Duration.zero, clock.now)
    while let violation = try await unsettled() {
      try violations.check()
      looks += 1
      // A pause of the whole process counts little, so that it is not reported as an engine that hangs.
      let now = clock.now
      spent += min(now - last, .milliseconds(50))
      last = now
      if looks > 100, spent > patience { throw violation }
      await Task.yield()
    }
  }

  /// What the engine has yet to do; `nil` if there is nothing.
  private func unsettled() async throws -> Violation? {
    let holding = source.holding
    let records = try await ledger.records()
    let active = records.filter(\.phase.isActive)
    if let idle = active.first(where: { !holding.contains($0.id) }) {
      return Violation(property: .slots, text: "\(idle.id) is \(idle.phase) but transfers nothing")
    }
    if let id = holding.subtracting(active.map(\.id)).first {
      return Violation(property: .slots, text: "\(id) transfers, but is not active")
    }
    guard isGateOpen, !isSuspended else {
      return active.first.map {
        Violation(property: .gates, text: "\($0.id) runs although the gate is closed or all downloads are suspended")
      }
    }
    var running = RunningDownloads()
    for record in active {
      if !mayExceed, !limits.admit(record.candidate, beside: running) {
        return Violation(
          property: .limits, text: "\(active.map(\.id.rawValue)) run although the limits were lowered to \(limits)")
      }
      running.insert(record.candidate)
    }
    let now = time.date
    let next = records.first { record in
      record.phase == .waiting && (record.notBefore ?? now) <= now && limits.admit(record.candidate, beside: running)
    }
    return next.map {
      Violation(
        property: .slots, text: "\($0.id) waits although \(limits) permit it beside \(active.map(\.id.rawValue))")
    }
  }

  /// Releases everything and checks that all downloads end.
  func end() async throws {
    try await settle()
    isGateOpen = true
    gate.open()
    source.finishAll()
    isSuspended = false
    await downloader.setSuspended(false)
    try await set(QueueLimits(concurrent: 1, perHost: 1, even: 1))
    try await downloader.resumeAll()
    let clock = Task { [time] in
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    defer { clock.cancel() }
    try await downloader.waitUntilIdle()
    // A slot that is still taken would hold this download back.
    let number = QueueOperation.downloads
    let last = try await downloader.add(QueueSource.request(number))
    _ = try await last.value
    try await downloader.waitUntilIdle()
    try violations.check()
    try await checkEnds()
  }

  private func checkEnds() async throws {
    let statuses = try await downloader.statuses()
    for status in statuses {
      guard status.state.phase.isFinal else {
        throw Violation(property: .ending, text: "\(status.id) is \(status.state.phase) when no download waits or runs")
      }
      if status.state.phase == .finished, storage.published[status.id.rawValue] != QueueSource.bytes(of: status.id) {
        throw Violation(property: .ending, text: "\(status.id) has finished, but its file is missing or wrong")
      }
    }
    let failed = Set(statuses.filter { $0.state.phase == .failed }.map(\.id))
    if let key = storage.partials.keys.first(where: { !failed.contains($0.id) }) {
      throw Violation(property: .ending, text: "the partial of \(key.id) is left, although it has not failed")
    }
    if !source.active.isEmpty || storage.openPartials > 0 {
      throw Violation(
        property: .slots, text: "\(source.active.map(\.rawValue)) run, and \(storage.openPartials) partials are open")
    }
  }

  /// Shuts the downloader down.
  func close() async {
    source.finishAll()
    await downloader.shutdown(waitingAtMost: nil)
  }
}
