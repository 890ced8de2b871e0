import DownpipeCore

// Commands for several downloads, and those that pass bytes or stages on.
extension SimulatedUser {
  // MARK: Several downloads

  func bulk(
    _ operation: SimulatedCommand.BulkOperation, of selection: SimulatedCommand.BulkSelection,
    with downloader: Downloader
  ) async throws -> String {
    world.coverage.count("bulk: \(operation.rawValue)")
    let (filter, scope) = meaning(of: selection)
    // Which downloads are in a phase is not known here, and neither is which ones were paused together.
    if operation == .prioritize { return "\(try await perform(operation, filter, downloader))" }
    guard let scope, let effect = operation.effect else {
      return try await all(.unknown) { try await perform(operation, filter, downloader) }
    }
    return try await all(effect, in: scope) { try await perform(operation, filter, downloader) }
  }

  private func perform(
    _ operation: SimulatedCommand.BulkOperation, _ filter: DownloadFilter, _ downloader: Downloader
  ) async throws -> Int {
    switch operation {
    case .pause: try await downloader.pauseAll(filter)
    case .resume: try await downloader.resumeAll(filter)
    case .resumeTogether: try await downloader.resumeAll(filter, only: .pausedTogether)
    case .restart: try await downloader.restartAll(filter)
    case .refresh: try await downloader.refreshAll(filter)
    case .cancel: try await downloader.cancelAll(filter)
    case .remove: try await downloader.removeAll(filter, deletingFiles: true)
    case .prioritize: try await downloader.updateAll(filter) { $0.priority = .high }
    }
  }

  /// The filter of a selection, and the downloads that it has in any case.
  private func meaning(
    of selection: SimulatedCommand.BulkSelection
  ) -> (DownloadFilter, CommandOrder.Scope?) {
    switch selection {
    case .numbers(let numbers):
      let ids = numbers.map(SimulatedRequest.id)
      return (.ids(ids), .some(Set(ids)))
    case .tag(let isOdd):
      let numbers = SimulatedRequest.numbers.filter { ($0 % 2 == 1) == isOdd }
      return (.tag(isOdd ? "t1" : "t0"), .some(Set(numbers.map(SimulatedRequest.id))))
    case .phase(let phase): return (.phases([phase]), nil)
    case .host(let number):
      let servers = world.configuration.servers
      return (.host(servers.isEmpty ? "" : servers[number % servers.count].host), nil)
    }
  }

  // MARK: One download

  /// Copies the bytes of a download, and adds another one that continues with them.
  func handOver(_ number: Int, to other: Int, with downloader: Downloader) async throws -> String {
    let path = process.system.disk.makeExportPath()
    checks.exports(SimulatedRequest.id(number), begins: true)
    defer { checks.exports(SimulatedRequest.id(number), begins: false) }
    let export = try await downloader.exportPartial(SimulatedRequest.id(number), to: path)
    var request = DownloadRequest(
      export.request.url, id: SimulatedRequest.id(other), tags: ["t\(other % 2)"],
      destination: .init(name: "f\(other)"))
    checks.continues(request.id, withBytesOf: export.request.id)
    request.headStart = .init(file: path, count: export.count, validator: export.validator, total: export.total)
    return try await one(.add, other) { [request] _ in
      _ = try await downloader.add(request)
      return true
    }
  }

  func change(
    _ id: DownloadID, _ change: SimulatedCommand.RequestChange, with downloader: Downloader
  ) async throws -> Bool {
    let (world, network) = (world.configuration, process.system.network)
    try await downloader.update(id) { request in
      switch change {
      case .destination: request.destination.name = (request.destination.name ?? "") + "+"
      case .independent: request.after = []
      case .mirrors:
        request.mirrors = request.mirrors.isEmpty ? SimulatedRequest.copies(of: request.url, in: world) : []
      case .segments:
        if request.tags.remove(SimulatedSegments.tag) == nil { request.tags.insert(SimulatedSegments.tag) }
      case .size: request.expectedSize = network.content(of: request.url).map { .known($0.size) } ?? .unknown
      case .stepSetting: request.metadata[DownloadRequest.stepSettingPrefix + "simulation", default: ""] += "+"
      }
    }
    return true
  }

  /// Waits for a file; why there is none is no concern of the user.
  func awaitFile(_ number: Int, of downloader: Downloader) async throws -> String {
    guard let download = try await downloader.download(SimulatedRequest.id(number)) else { return "no download" }
    let file = try await withinAMinute {
      do { return "\(try await download.value)" } catch let error as DownloadError { return "\(error)" }
    }
    return file ?? "gave up"
  }

  // MARK: Stages

  /// Removes a stage, and puts it back.
  func remove(
    _ stage: SimulatedCommand.RemovedStage, for duration: Duration, of downloader: Downloader
  ) async throws {
    switch stage {
    case .gate where !process.usesGate, .limits where !process.usesLimits: break
    case .rate: await downloader.removeRatePolicy(id: SimulatedRate.usualName)
    case .gate:
      process.noteGateRemoval(begins: true)
      checks.gate(of: process, isOpen: true)
      await downloader.removeGate(id: process.gate.name)
      try? await process.time.sleep(for: duration, purpose: Self.sleep)
      await downloader.replace(process.gate)
      process.noteGateRemoval(begins: false)
      if process.isAlive { checks.gate(of: process, isOpen: !process.isGateClosed) }
    case .limits:
      await checks.replaceLimits(of: process, downloader, by: .none) {
        await downloader.removeAdmissionPolicy(id: SimulatedLimits.usual.name)
      }
      try? await process.time.sleep(for: duration, purpose: Self.sleep)
      await checks.replaceLimits(of: process, downloader, by: .usual) {
        await downloader.replace(SimulatedLimits.usual)
      }
    }
  }
}

extension SimulatedCommand.BulkOperation {
  /// What the operation does to each download; `nil` if that depends on more than its phase.
  fileprivate var effect: CommandOrder.Effect? {
    switch self {
    case .pause: .pause
    case .resume: .resume
    case .restart: .restart
    case .cancel: .cancel
    case .remove: .remove
    case .resumeTogether, .refresh, .prioritize: nil
    }
  }
}
