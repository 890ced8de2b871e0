#if os(Linux) && Postgres
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Synchronization

  @testable import FaultyServer

  /// A fleet on machines of its own, and what happens to it.
  final class FleetTrial: Sendable {
    let folder: String
    private let settings: FleetTrialSettings
    private let plan: FleetTrialPlan
    private let network: FleetTrialNetwork
    private let database: FleetTrialDatabase
    private let web: FleetTrialWeb
    private let operators: FleetTrialMachine
    private let workers: [FleetTrialWorker]
    private let monitor: FleetTrialMonitor
    private let urls: [String]
    private let added = Atomic(0)
    private let events = Mutex<[FleetTrialEvent]>([])

    init(_ settings: FleetTrialSettings) async throws {
      self.settings = settings
      plan = FleetTrialPlan(settings)
      folder = "\(settings.folder)/fleet-\(UInt32.random(in: 0...UInt32.max))"
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      network = try await FleetTrialNetwork()
      database = try await FleetTrialDatabase(network, in: folder)
      operators = try await network.machine("operator", number: 200)
      let host = try await network.machine("web", number: 201)
      try await network.host(on: host)

      var generator = SeededGenerator(seed: settings.seed)
      let files = (0..<settings.files).map { ServedFile(number: $0, using: &generator) }
      let hosts = ServedHosts(network: "10.66", count: settings.hosts)
      urls = hosts.urls(of: files, port: 80, using: &generator)
      // So slow that the queue is there as long as the faults.
      let slots = min(settings.workers * settings.jobs, 2 * hosts.busy * settings.perHost)
      let delay = plan.duration(workers: settings.workers) * (Double(slots) * 0.6 / Double(settings.files))
      web = try FleetTrialWeb(
        on: host, seed: settings.seed, delay: min(max(delay, .milliseconds(20)), .seconds(2)), log: folder + "/requests"
      )
      var workers: [FleetTrialWorker] = []
      for number in 0..<settings.workers {
        let machine = try await network.machine("w\(number + 1)", number: number + 1)
        workers.append(FleetTrialWorker(number, on: machine, in: folder, settings, ledger: database.address))
      }
      self.workers = workers
      monitor = FleetTrialMonitor(on: operators, tool: settings.tool, ledger: database.address)
    }

    // MARK: The course

    func run() async throws -> FleetTrialReport {
      let start = ContinuousClock.now
      try await add(settings.files / 2)
      _ = try await database.query(FleetTrialAudit.preparation)
      for worker in workers { try worker.start() }
      let watching = Task { [monitor, workers] in await monitor.watch(workers) { self.added.load(ordering: .relaxed) } }
      async let databaseFaults: Void = sufferInDatabase()
      try await sufferInWorkers()
      try await databaseFaults
      let faultTime = start.duration(to: .now)
      // There is work left after the last fault.
      try await add(settings.files - added.load(ordering: .relaxed))
      try await waitUntilFinished()
      let time = start.duration(to: .now)
      watching.cancel()
      await watching.value

      try await waitUntilClean()
      var report = FleetTrialReport(settings: settings, time: time, faultTime: faultTime)
      try await checkEndpoints(&report)
      for worker in workers {
        let status = await worker.stop()
        if status != 0 { report.problems.append("\(worker.machine.name) ended with \(status) after SIGTERM") }
      }
      report.note(workers)
      try await check(&report)
      return report
    }

    /// Adds the next downloads, as an operator does: again, if the database was away.
    private func add(_ count: Int) async throws {
      let first = added.load(ordering: .relaxed)
      guard count > 0, first < urls.count else { return }
      let some = urls[first..<min(first + count, urls.count)]
      let list = folder + "/list"
      try some.joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
      // What is being added may be in the queue already.
      added.store(first + some.count, ordering: .relaxed)
      while true {
        let words = operators.launcher + [settings.tool, "add", "-i", list, "--ledger", database.address]
        let outcome = try await Command(words[0], Array(words.dropFirst())).run()
        if outcome.status == 0 { return }
        try await Task.sleep(for: .seconds(1))
      }
    }

    private func waitUntilFinished() async throws {
      while true {
        if let status = try? await monitor.status(),
          status.queue["finished", default: 0] + status.queue["failed", default: 0] == urls.count
        {
          return
        }
        try await Task.sleep(for: .seconds(1))
      }
    }

    /// Waits until the workers have deleted what they had left behind, which they do once a minute; not for ever.
    private func waitUntilClean() async throws {
      let end = ContinuousClock.now + .seconds(600)
      while workers.contains(where: { !$0.leftovers.isEmpty }), .now < end {
        try await Task.sleep(for: .seconds(1))
      }
    }

    // MARK: Faults

    private func note(_ fault: FleetTrialFault, since begin: UInt64) {
      let event = FleetTrialEvent(fault: fault, begin: begin, end: WallClock.now)
      events.withLock { $0.append(event) }
      FileHandle.standardError.write(Data("fleet trial: \(fault), \((event.end - begin) / 1_000_000) ms\n".utf8))
    }

    private func sufferInDatabase() async throws {
      let gap = plan.duration(workers: settings.workers) / (plan.database.count + 1)
      for fault in plan.database {
        try await Task.sleep(for: gap)
        let begin = WallClock.now
        try await database.suffer(fault)
        note(.database(fault), since: begin)
        try await database.recover(from: fault)
      }
    }

    /// Starts the faults in their order, each as soon as its worker has none and not too many workers have one.
    private func sufferInWorkers() async throws {
      let busy = Watched<Set<Int>>([])
      let most = FleetTrialPlan.mostAtOnce(of: settings.workers)
      let portion = settings.files * 48 / 100 / max(1, plan.faults.count)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for fault in plan.faults {
          guard let worker = fault.worker else { continue }
          await busy.wait { !$0.contains(worker) && $0.count < most }
          busy.update { _ = $0.insert(worker) }
          group.addTask {
            try await self.suffer(fault, self.workers[worker])
            busy.update { _ = $0.remove(worker) }
          }
          try await add(portion)
        }
        try await group.waitForAll()
      }
    }

    private func suffer(_ fault: FleetTrialFault, _ worker: FleetTrialWorker) async throws {
      let begin = WallClock.now
      switch fault {
      case .kill(_, let away): try await worker.kill(away: away)
      case .pause(_, let time): try await worker.pause(for: time)
      case .cutFromDatabase(_, let loss, let time):
        try await cut(worker, from: database.places, loss, time)
      case .cutFromWeb(_, let loss, let time):
        try await cut(worker, from: [FleetTrialNetwork.web], loss, time)
      case .database: return
      }
      note(fault, since: begin)
      // Some work between two faults of one worker.
      try await Task.sleep(for: .seconds(2))
    }

    private func cut(
      _ worker: FleetTrialWorker, from places: [String], _ loss: FleetTrialFault.Loss, _ time: Duration
    ) async throws {
      var cuts: [Int] = []
      for place in places { cuts.append(try await network.cut(worker.machine.address, place, loss)) }
      try await Task.sleep(for: time)
      for cut in cuts { try await network.mend(cut) }
    }

    // MARK: Checking

    private func checkEndpoints(_ report: inout FleetTrialReport) async throws {
      let status = try await monitor.status()
      if status.queue != ["finished": settings.files] {
        report.problems.append("the queue at the end: \(status.queue), failures \(status.failures)")
      }
      let heard = status.workers.filter(\.isHeard)
      if Set(heard.map(\.host)) != Set(workers.map(\.machine.name)) || heard.contains(where: { $0.running != 0 }) {
        report.problems.append("the workers at the end: \(status.workers)")
      }
      for worker in workers {
        // The endpoint looks at the queue every few seconds.
        var metrics = try await monitor.metrics(of: worker)
        let end = ContinuousClock.now + .seconds(300)
        while !isIdle(metrics), .now < end {
          try await Task.sleep(for: .seconds(1))
          metrics = try await monitor.metrics(of: worker)
        }
        if !isIdle(metrics) { report.problems.append("the metrics of \(worker.machine.name) at the end: \(metrics)") }
      }
      report.problems += monitor.problems
      report.statuses = monitor.summary
      checkHealth(&report)
    }

    private func isIdle(_ metrics: [String: Double]) -> Bool {
      metrics["downpipe_ledger_up"] == 1 && metrics["downpipe_worker_running"] == 0
        && metrics["downpipe_queue_downloads{phase=\"finished\"}"] == Double(settings.files)
    }

    /// A worker that is cut off from the database says so after half a minute, and a worker without a fault is well.
    private func checkHealth(_ report: inout FleetTrialReport) {
      let events = events.withLock { $0 }
      let second: UInt64 = 1_000_000_000
      for look in monitor.looks {
        let faults = events.filter { $0.fault.worker == look.worker || $0.fault.kind == .database }
        let current = faults.filter { $0.begin <= look.at && look.at <= $0.end }
        if let cut = current.first(where: { $0.fault.kind == .cutFromDatabase }), current.count == 1,
          look.at >= cut.begin + 36 * second
        {
          report.healthChecks += 1
          if look.health != 503 { report.problems.append("a cut-off worker says \(look.health): \(cut)") }
        }
      }
    }

    private func check(_ report: inout FleetTrialReport) async throws {
      let events = events.withLock { $0 }
      report.events = events
      let requests = try await web.close()
      let excuses = events.compactMap { event -> FleetTrialCount.Excuse? in
        guard let worker = event.fault.worker, [.kill, .pause, .cutFromWeb].contains(event.fault.kind) else {
          return nil
        }
        return FleetTrialCount.Excuse(
          kind: event.fault.kind, address: workers[worker].machine.address, begin: event.begin, end: event.end)
      }
      report.requests = requests.count
      report.note(FleetTrialCount(requests, limit: settings.perHost, excuses: excuses), limit: settings.perHost)
      let audit = try await FleetTrialAudit(database)
      report.note(audit, limit: settings.perHost)
      report.note(FleetTrialCheck(audit, urls: urls, workers, events))
      let openings = try await database.query("SELECT owner FROM downpipe.opening")
      if !openings.isEmpty { report.problems.append("openings are left: \(openings)") }
    }
  }
#endif
