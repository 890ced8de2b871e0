#if os(Linux) && Postgres
  import DownpipeCore
  import Foundation

  /// What a trial has found.
  struct FleetTrialReport {
    let settings: FleetTrialSettings
    let time: Duration
    let faultTime: Duration
    var problems: [String] = []
    var events: [FleetTrialEvent] = []
    var requests = 0
    var statuses = (statuses: 0, mostRunning: 0)
    var healthChecks = 0
    private var starts = 0
    private var ends: [String] = []
    private var finishedLines = 0
    private var count: FleetTrialCount?
    private var mostLeases = 0
    private var check: FleetTrialCheck?

    init(settings: FleetTrialSettings, time: Duration, faultTime: Duration) {
      (self.settings, self.time, self.faultTime) = (settings, time, faultTime)
    }

    mutating func note(_ workers: [FleetTrialWorker]) {
      var finished: [String: Int] = [:]
      for worker in workers {
        starts += worker.starts
        ends += worker.unexpectedEnds
        for line in worker.lines where line.event == "finished" { finished[line.id ?? "", default: 0] += 1 }
        if worker.errors.contains("Fatal error") || worker.errors.contains("crashed") {
          problems.append("\(worker.machine.name) has crashed: \(worker.errors.suffix(2000))")
        }
      }
      finishedLines = finished.count
      for (id, count) in finished where count > 1 { problems.append("\(id) was reported as finished \(count) times") }
    }

    mutating func note(_ count: FleetTrialCount, limit: Int) {
      self.count = count
      for excess in count.excesses {
        problems.append("\(excess.count) requests at once for \(excess.end - excess.begin) ns: \(excess)")
      }
    }

    mutating func note(_ audit: FleetTrialAudit, limit: Int) {
      mostLeases = audit.mostLeases
      if mostLeases > limit { problems.append("\(mostLeases) downloads of one host were leased at once") }
    }

    mutating func note(_ check: FleetTrialCheck) {
      self.check = check
      problems += check.problems
      problems += check.leftovers.map { "left behind: \($0)" }
    }

    var text: String {
      func list<Key: RawRepresentable<String>>(_ counts: [Key: some Any]) -> String {
        counts.map { "\($0.key.rawValue) \($0.value)" }.sorted().joined(separator: ", ")
      }
      let kinds = Dictionary(grouping: events, by: \.fault.kind).mapValues(\.count)
      return """
        fleet trial: \(settings.files) files from \(settings.hosts) hosts, \(settings.workers) workers, seed \(settings.seed)
          time: \(Int(time / .seconds(1))) s, with faults for \(Int(faultTime / .seconds(1))) s; faults: \(list(kinds))
          workers: \(starts) starts; ended by themselves: \(ends.isEmpty ? "none" : ends.joined(separator: "; "))
          ledger: \(check?.leases ?? 0) leases, \(check?.leasedAgain ?? 0) downloads leased again; \
        at most \(mostLeases) of one host at once
          web: \(requests) requests; at most \(count?.most ?? 0) of one host at once, \
        \(count?.mostWithExcused ?? 0) with those of workers that had lost them: \(list(count?.excused ?? [:])); \
        the longest after the fault, in ms: \(list((count?.longestAfter ?? [:]).mapValues { $0 / 1_000_000 }))
          files: \(check?.bytes ?? 0) bytes; other copies, by their faults: \(list(check?.otherCopies ?? [:])); \
        left behind: \(check?.leftovers.count ?? 0)
          status: \(statuses.statuses) looks, at most \(statuses.mostRunning) running; \(healthChecks) looks at cut-off workers; \
        \(finishedLines) files reported as finished
          problems: \(problems.count)
        """
    }
  }
#endif
