import DownpipeCore
import Foundation

/// A user of a simulated process, who gives one command after the other.
struct SimulatedUser: Sendable {
  let number: Int
  let process: SimulatedProcess
  let order: CommandOrder
  /// Opens another downloader after a shutdown.
  let open: @Sendable () async throws -> Downloader

  /// The purpose of users' own sleeps.
  static let sleep = SleepPurpose("user")

  var world: World { process.system.world }
  var checks: InvariantChecks { process.system.checks }

  /// Gives a command, and waits for its end.
  func perform(_ command: SimulatedCommand) async {
    guard let downloader = await downloader() else { return }
    world.timeline.note(.command, process.number, command.id, text: "user \(number): \(command)")
    world.coverage.count("command: \(command.name)")
    do {
      let result = try await perform(command, with: downloader)
      world.timeline.note(
        .command, process.number, command.id, text: "user \(number): \(command) returned \(result ?? "")")
    } catch {
      world.timeline.note(.command, process.number, command.id, text: "user \(number): \(command) threw \(error)")
      check(error, of: command)
    }
  }

  /// The downloader; waits while another user opens one.
  private func downloader() async -> Downloader? {
    while process.isAlive {
      if let downloader = process.downloader { return downloader }
      guard (try? await process.time.sleep(for: .milliseconds(50), purpose: Self.sleep)) != nil else { return nil }
    }
    return nil
  }

  /// The errors that commands may throw in a world without faults of its own.
  private static let expected: Set<DownloadError.Code> = [.invalidRequest, .shutDown, .inUse, .removed]

  private func check(_ error: any Error, of command: SimulatedCommand) {
    guard process.isAlive, !(error is CancellationError) else { return }
    let code = (error as? DownloadError)?.code
    let configuration = world.configuration
    if let code, Self.expected.contains(code) { return }
    if let error = error as? DownloadError, error.scope == .machine, !configuration.lacks.isEmpty { return }
    if code == .ledger, configuration.ledgerFailures > 0 { return }
    if code == .storage || code == .noSpace, configuration.diskFailures > 0 || configuration.diskSpace != nil { return }
    // The user may have deleted or renamed the file meanwhile, or the bytes were moved to it.
    if code == .storage, ["rename", "verify", "repair", "handOver"].contains(command.name) { return }
    checks.report(.response, "\(command) threw \(error)")
  }

  // MARK: Commands

  /// Gives a command whose effect on downloads is checked.
  func ordered(
    _ effect: CommandOrder.Effect, _ scope: CommandOrder.Scope, _ url: URL? = nil, _ work: () async throws -> Bool
  ) async throws -> Bool {
    let number = order.begin(effect, scope, url, at: world.scheduler.steps)
    do {
      let hadEffect = try await CommandOrder.$current.withValue(order.call(number)) { try await work() }
      order.end(number, process.isAlive ? .effect(hadEffect) : .failed, at: world.scheduler.steps)
      return hadEffect
    } catch {
      let isRefused = process.isAlive && (error as? DownloadError)?.code == .invalidRequest
      order.end(number, isRefused ? .refused : .failed, at: world.scheduler.steps)
      throw error
    }
  }

  func one(
    _ effect: CommandOrder.Effect, _ number: Int, _ url: URL? = nil, _ work: (DownloadID) async throws -> Bool
  ) async throws -> String {
    let id = SimulatedRequest.id(number)
    return "\(try await ordered(effect, .one(id), url) { try await work(id) })"
  }

  func all(
    _ effect: CommandOrder.Effect, in scope: CommandOrder.Scope = .all, _ work: () async throws -> Int
  ) async throws -> String {
    var count = 0
    _ = try await ordered(effect, scope) {
      count = try await work()
      return true
    }
    return "\(count)"
  }

  private func perform(_ command: SimulatedCommand, with downloader: Downloader) async throws -> String? {
    switch command {
    case .add(let number, let file, let priority, let after, let options):
      let request = request(number, file, priority, after, options)
      let ifKnown: KnownDownload = options.contains(.keep) ? .keep : .update
      return try await one(.add, number, options.contains(.keep) ? nil : request.url) { _ in
        _ = try await downloader.add(request, ifKnown: ifKnown)
        return true
      }
    case .pause(let number): return try await one(.pause, number) { try await downloader.pause($0) }
    case .resume(let number): return try await one(.resume, number) { try await downloader.resume($0) }
    case .start(let number, let preemption):
      return try await one(.unknown, number) { try await downloader.start($0, preempting: preemption) }
    case .restart(let number): return try await one(.restart, number) { try await downloader.restart($0) }
    case .refresh(let number): return try await one(.unknown, number) { try await downloader.refresh($0) }
    case .cancel(let number): return try await one(.cancel, number) { try await downloader.cancel($0) }
    case .discard(let number): return try await one(.discard, number) { try await downloader.discard($0) }
    case .remove(let number, let deletingFile):
      return try await one(.remove, number) { try await downloader.remove($0, deletingFile: deletingFile) }
    case .redirect(let number, let file):
      let (url, mirrors) = (url(file), SimulatedRequest.copies(of: url(file), in: world.configuration))
      return try await one(.unknown, number, url) { id in
        try await downloader.update(id) { request in
          (request.url, request.mirrors) = (url, request.mirrors.isEmpty ? [] : mirrors)
          (request.expectedDigests, request.metadata[SimulatedRequest.digestKey]) = ([], nil)
          request.expectedSize = .unknown
        }
        return true
      }
    case .addTogether(let numbers, let file):
      let requests = numbers.enumerated().map { request($1, file + $0, .normal, nil, []) }
      return try await all(.add, in: .some(Set(requests.map(\.id)))) {
        try await downloader.add(contentsOf: requests).count
      }
    case .bulk(let operation, let selection): return try await bulk(operation, of: selection, with: downloader)
    case .repair(let number):
      var found: Verification?
      _ = try await one(.unknown, number) {
        found = try await downloader.verify($0, repairing: true)
        return true
      }
      return found.map { "\($0)" }
    case .handOver(let number, let other): return try await handOver(number, to: other, with: downloader)
    case .change(let number, let change):
      return try await one(.unknown, number) { try await self.change($0, change, with: downloader) }
    case .pauseAll: return try await all(.pause) { try await downloader.pauseAll() }
    case .resumeAll: return try await all(.resume) { try await downloader.resumeAll() }
    case .restartAll: return try await all(.restart) { try await downloader.restartAll() }
    case .refreshAll: return try await all(.unknown) { try await downloader.refreshAll() }
    case .cancelAll: return try await all(.cancel) { try await downloader.cancelAll() }
    case .removeAll: return try await all(.remove) { try await downloader.removeAll(deletingFiles: true) }
    default: return try await performOther(command, with: downloader)
    }
  }

  /// Performs a command that does not determine the state of downloads.
  private func performOther(_ command: SimulatedCommand, with downloader: Downloader) async throws -> String? {
    switch command {
    case .prioritize(let number, let priority):
      try await downloader.update(SimulatedRequest.id(number)) { $0.priority = priority }
    case .rename(let number): try await downloader.rename(SimulatedRequest.id(number), to: "renamed-\(number)")
    case .verify(let number): return "\(try await downloader.verify(SimulatedRequest.id(number)))"
    case .prioritizeAll(let priority): return "\(try await downloader.updateAll { $0.priority = priority })"
    case .suspend(let isSuspended):
      if !isSuspended { checks.goesOn(process) }
      await downloader.setSuspended(isSuspended)
      // Again, because the call of another user may have found the downloads suspended meanwhile.
      if !isSuspended { checks.goesOn(process) }
      let endings = checks.endingsOfSuspensions(process)
      if await isStillSuspended(downloader) { checks.isSuspended(process, unlessEndedAfter: endings) }
    case .gate(let isOpen):
      checks.gate(of: process, isOpen: isOpen || !process.hasGate)
      process.gate.set(isOpen: isOpen)
    // Stages that the pipeline has not would be added to it.
    case .limit where !process.usesLimits, .gate where !process.usesGate: return "left out"
    case .limit(let concurrent, let perHost, let excess):
      let limits = SimulatedLimits(concurrent: concurrent, perHost: perHost)
      await checks.replaceLimits(of: process, downloader, by: limits) {
        await downloader.replace(limits, excess: excess)
      }
    case .replaceStage(let stage): try await replace(stage, of: downloader)
    case .removeStage(let stage, let time): try await remove(stage, for: .milliseconds(time), of: downloader)
    case .set(let rate, let connections):
      try await downloader.settings(SimulatedSettings.self).update {
        $0 = SimulatedSettings(bytesPerSecond: rate, connections: connections)
      }
    case .swapFile(let file): process.system.network.swap(url(file))
    case .look: return try await look(downloader)
    case .removeOrphans: return "\(try await downloader.removeOrphans(try await downloader.orphans()))"
    case .watch(let number): await process.watchers.watch(SimulatedRequest.id(number), of: downloader)
    case .watchAll: process.watchers.watchAll(downloader)
    case .awaitFile(let number): return try await awaitFile(number, of: downloader)
    case .waitUntilIdle: return try await waitUntilIdle(downloader)
    case .setDate(let seconds): world.jumpDate(by: .seconds(seconds))
    case .wait(let milliseconds):
      try await process.time.sleep(for: .milliseconds(milliseconds), purpose: Self.sleep)
    case .reopen: try await reopen(downloader)
    default: break
    }
    return nil
  }

  /// Whether the downloads of the process are suspended. Another user may have opened another downloader meanwhile.
  private func isStillSuspended(_ downloader: Downloader) async -> Bool {
    await downloader.isSuspended && process.downloader === downloader && process.isAlive
  }

  func url(_ file: Int) -> URL {
    let urls = SimulatedRequest.urls(in: world.configuration)
    return urls[file % max(1, urls.count)]
  }

  private func request(
    _ number: Int, _ file: Int, _ priority: Priority, _ after: Int?, _ options: SimulatedCommand.RequestOptions
  ) -> DownloadRequest {
    let url = url(file)
    let content = process.system.network.content(of: url)
    var request = DownloadRequest(
      url, id: SimulatedRequest.id(number), priority: priority, tags: ["t\(number % 2)"],
      destination: .init(name: "f\(number)"))
    if let after { request.after = [SimulatedRequest.id(after)] }
    if options.contains(.mirrors) { request.mirrors = SimulatedRequest.copies(of: url, in: world.configuration) }
    if options.contains(.segments) { request.tags.insert(SimulatedSegments.tag) }
    if options.contains(.ifChanged) { request.refresh = .ifChanged }
    if options.contains(.size), let content { request.expectedSize = .known(content.size) }
    if options.contains(.digest), process.verifiesDigests, let content {
      request.expectedDigests = [content.digest]
      request.metadata[SimulatedRequest.digestKey] = "yes"
    }
    return request
  }

  // MARK: Other commands

  func replace(_ stage: SimulatedCommand.ReplacedStage, of downloader: Downloader) async throws {
    switch stage {
    case .scheduling:
      let policy: any SchedulingPolicy = process.pipeline?.scheduling ?? SimulatedOrder()
      try await downloader.replace(policy)
    case .retry:
      let policy: any RetryPolicy = process.pipeline?.retry ?? Retry(.exponential(attempts: 6))
      await downloader.replace(policy)
    case .source: for source in process.pipeline?.sources ?? [] { try await downloader.replace(source) }
    case .gate: for gate in process.pipeline?.gates ?? [] where process.hasGate { await downloader.replace(gate) }
    case .rate: await downloader.replace(SimulatedRate(bytesPerSecond: 400_000))
    case .segments:
      guard let segments = process.pipeline?.segments else { return }
      let policy: any SegmentPolicy =
        segments is SimulatedSegments ? SimulatedSegments(maximumConnections: 2) : segments
      await downloader.replace(policy)
    }
  }

  private func look(_ downloader: Downloader) async throws -> String {
    let statuses = try await downloader.statuses()
    _ = try await downloader.statuses(of: statuses.map(\.id))
    if let status = statuses.first {
      _ = try await downloader.contains(status.id)
      _ = try await downloader.status(of: status.id)
      try await downloader.validate(status.request)
    }
    _ = try await downloader.counts(.tag("t1"))
    _ = try await downloader.totals()
    _ = try await downloader.orphans()
    _ = try await downloader.damaged()
    _ = await downloader.pipeline
    return "\(statuses.count) downloads"
  }

  private func waitUntilIdle(_ downloader: Downloader) async throws -> String {
    let begin = world.scheduler.steps
    let isIdle =
      try await withinAMinute {
        try await downloader.waitUntilIdle()
        return true
      } ?? false
    if isIdle, process.isAlive { checks.checkIdle(since: begin) }
    return isIdle ? "idle" : "gave up"
  }

  /// Waits for something, which a closed gate may hold up for ever.
  /// - Returns: `nil` if it takes too long.
  func withinAMinute<Success: Sendable>(
    _ work: @escaping @Sendable () async throws -> Success
  ) async throws -> Success? {
    try await withThrowingTaskGroup(of: Success?.self) { group in
      group.addTask { try await work() }
      group.addTask {
        try await process.time.sleep(for: .seconds(60), purpose: Self.sleep)
        return nil
      }
      let first = try await group.next() ?? nil
      group.cancelAll()
      return first
    }
  }

  private func reopen(_ downloader: Downloader) async throws {
    guard process.downloader === downloader else { return }
    process.forgetDownloader()
    // What blocks is left behind; only one process at a time may use the store.
    if await !downloader.shutdown().isComplete { await downloader.shutdown(waitingAtMost: nil) }
    guard process.isAlive else { return }
    process.checkShutdown(isAlone: false)
    while process.isAlive {
      do {
        _ = try await open()
        return
      } catch {
        try await process.time.sleep(for: .seconds(1), purpose: Self.sleep)
      }
    }
  }
}

extension SleepPurpose {
  /// A simulated disk or ledger is slow.
  static let simulated = SleepPurpose("simulated")
}

/// The order of arrival, by another name.
struct SimulatedOrder: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
}

extension SimulatedCommand {
  /// The name of the case.
  var name: String { String("\(self)".prefix { $0 != "(" }) }

  /// The download that the command names; `nil` for other commands.
  var id: DownloadID? {
    switch self {
    case .add(let number, _, _, _, _), .pause(let number), .resume(let number), .start(let number, _),
      .restart(let number), .refresh(let number), .cancel(let number), .discard(let number), .remove(let number, _),
      .prioritize(let number, _), .redirect(let number, _), .rename(let number), .verify(let number),
      .watch(let number), .repair(let number), .handOver(let number, _), .change(let number, _), .awaitFile(let number):
      SimulatedRequest.id(number)
    default: nil
    }
  }
}
