@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation

/// A ledger in memory with one defect, for property tests that must find it.
struct DefectiveLedger: Ledger {
  enum Defect: Sendable {
    /// The downloads of a lease come in the wrong order.
    case reversesLeases
    /// Leased downloads have no priority, so that the engine ranks them wrongly while they run.
    case losesPriorities
    /// Paused downloads are leased, once the download `d2` is there.
    case resumesPaused
    /// A finished download is started again.
    case restartsFinished
    /// Downloads cannot be removed.
    case refusesRemovals
  }

  let defect: Defect
  let base = MemoryLedger()

  init(_ defect: Defect) { self.defect = defect }

  func open() async throws -> any LedgerStore { Store(base: try await base.open(), defect: defect) }

  private struct Store: LedgerStoreWrapper {
    let base: any LedgerStore
    let defect: Defect

    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      if defect == .resumesPaused, try await base.record("d2") != nil {
        let paused = try await base.records(DownloadQuery(phases: [.paused])).map(\.id)
        _ = try await base.transition(.ids(paused), .resume, at: request.now)
      }
      var leased = try await base.lease(request)
      switch defect {
      case .reversesLeases: leased.reverse()
      case .losesPriorities: for index in leased.indices { leased[index].request.priority = .normal }
      default: break
      }
      return leased
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      let isSaved = try await base.save(record, fields, at: now)
      if defect == .restartsFinished, record.phase == .finished {
        _ = try await base.transition(.ids([record.id]), .artifactLost, at: now)
      }
      return isSaved
    }

    func remove(
      _ selection: LedgerSelection, number: Int64?,
      leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
    ) async throws -> LedgerRemoval {
      if defect == .refusesRemovals { throw DownloadError(.ledger, "the disk is read-only") }
      return try await base.remove(selection, number: number, leaving: choose)
    }
  }
}
