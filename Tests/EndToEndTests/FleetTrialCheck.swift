#if os(Linux) && Postgres
  import DownpipeCore
  import Foundation
  import Glibc

  @testable import FaultyServer

  /// Compares what the ledger says with what is on the disks of the workers.
  ///
  /// A file can be on the disk of more than one worker: one that has published a file and dies, or is cut off, before the
  /// database knows, leaves it behind, and another one fetches it again. The contract is that nothing is published by
  /// a worker that does not hold the lease. So every other copy has to be whole, to have appeared while its worker held
  /// the lease, and that lease has to have ended without the worker's word because of a fault.
  struct FleetTrialCheck {
    private(set) var problems: [String] = []
    /// Files that the ledger does not name, by the kinds of the faults that explain them.
    private(set) var otherCopies: [FleetTrialFault.Kind: Int] = [:]
    private(set) var bytes: Int64 = 0
    /// Downloads that were leased more than once.
    private(set) var leasedAgain = 0
    private(set) var leases = 0
    private(set) var leftovers: [String] = []

    /// How much the clock of a file system, and that of a trigger, may be late: more than a tick of the kernel.
    private static let tick: UInt64 = 10_000_000
    private let audit: FleetTrialAudit
    private let workers: [FleetTrialWorker]
    private let events: [FleetTrialEvent]

    init(_ audit: FleetTrialAudit, urls: [String], _ workers: [FleetTrialWorker], _ events: [FleetTrialEvent]) {
      (self.audit, self.workers, self.events) = (audit, workers, events)
      problems = audit.problems
      checkLedger(urls)
      checkDisks()
    }

    // MARK: The ledger

    private mutating func checkLedger(_ urls: [String]) {
      let known = Dictionary(grouping: audit.downloads.values, by: \.url)
      for url in urls where known[url]?.count != 1 { problems.append("\(known[url]?.count ?? 0) downloads of \(url)") }
      if known.count != urls.count { problems.append("\(known.count) URLs in the ledger, \(urls.count) were added") }
      for (id, download) in audit.downloads {
        leases += download.leases.count
        if download.leases.count > 1 { leasedAgain += 1 }
        let finished = download.leases.filter { $0.outcome == "finished" }
        guard download.phase == "finished", !download.isLeased, finished.count == 1,
          download.leases.last?.outcome == "finished",
          workers.contains(where: { $0.machine.name == finished[0].worker }),
          !download.path.isEmpty
        else {
          problems.append("\(id) has not finished once: \(download)")
          continue
        }
      }
    }

    // MARK: The disks

    private mutating func checkDisks() {
      var artifacts: [String: String] = [:]
      for (id, download) in audit.downloads {
        guard let lease = download.leases.last(where: { $0.outcome == "finished" }),
          let worker = workers.first(where: { $0.machine.name == lease.worker })
        else { continue }
        let path = "\(worker.folder)/\(download.path)"
        if let other = artifacts.updateValue(id, forKey: path) {
          problems.append("“\(path)” is the file of \(id) and of \(other)")
        }
        // The bytes are on disk before the ledger says so.
        if let appeared = Self.changeTime(of: path), appeared > (lease.end ?? .max) + Self.tick {
          problems.append("“\(path)” appeared at \(appeared), after the ledger: \(lease)")
        }
      }
      let byName = Dictionary(audit.downloads.map { (ServedFile($1.url), $0) }) { first, _ in first }
      for worker in workers {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: worker.folder)) ?? []
        for name in names.sorted() where name != ".downpipe" {
          let path = "\(worker.folder)/\(name)"
          guard let file = ServedFile(name), let id = byName[file] else {
            problems.append("“\(path)” belongs to no download")
            continue
          }
          if (try? file.matches(URL(filePath: path))) != true { problems.append("“\(path)” has wrong bytes") }
          if artifacts.removeValue(forKey: path) != nil { bytes += file.size } else { checkCopy(path, of: id, worker) }
        }
        leftovers += worker.leftovers.map { "\(worker.machine.name): \($0)" }
      }
      for (path, id) in artifacts { problems.append("“\(path)” of \(id) does not exist") }
    }

    /// Checks a file that the ledger does not name.
    private mutating func checkCopy(_ path: String, of id: String, _ worker: FleetTrialWorker) {
      let leases = audit.downloads[id]?.leases.filter { $0.worker == worker.machine.name } ?? []
      guard let appeared = Self.changeTime(of: path) else { return problems.append("“\(path)” cannot be examined") }
      guard let lease = leases.first(where: { $0.begin <= appeared + Self.tick && appeared <= $0.end ?? .max }) else {
        return problems.append("“\(path)” was published at \(appeared), when its worker had no lease: \(leases)")
      }
      guard lease.outcome != "finished" else {
        return problems.append("“\(path)” is another copy of a finished download")
      }
      let faults = events.filter {
        ($0.fault.worker == worker.number || $0.fault.kind == .database) && $0.begin <= lease.end ?? .max
          && $0.end >= appeared
      }
      let fault = faults.first { $0.fault.worker != nil } ?? faults.first
      guard let fault else {
        return problems.append("“\(path)” was published twice without a fault: \(audit.downloads[id]?.leases ?? [])")
      }
      otherCopies[fault.fault.kind, default: 0] += 1
    }

    /// When the file got its name, in nanoseconds since 1970.
    private static func changeTime(of path: String) -> UInt64? {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      return UInt64(status.st_ctim.tv_sec) * 1_000_000_000 + UInt64(status.st_ctim.tv_nsec)
    }
  }
#endif
