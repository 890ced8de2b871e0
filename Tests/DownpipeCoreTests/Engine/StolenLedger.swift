@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import Synchronization

/// A ledger whose records another owner can take, as if each lease had expired and each record had been removed.
struct StolenLedger: Ledger {
  private final class Flag: Sendable {
    let isSet = Atomic(false)
  }

  private let base: any Ledger
  private let flag = Flag()

  init(_ base: any Ledger) { self.base = base }

  /// Makes all records disappear.
  func steal() { flag.isSet.store(true, ordering: .sequentiallyConsistent) }

  func open() async throws -> any LedgerStore { Store(base: try await base.open(), flag: flag) }

  private struct Store: LedgerStoreWrapper {
    let base: any LedgerStore
    let flag: Flag
    var isStolen: Bool { flag.isSet.load(ordering: .sequentiallyConsistent) }

    func record(_ id: DownloadID) async throws -> DownloadRecord? { isStolen ? nil : try await base.record(id) }
    func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
      isStolen ? [] : try await base.records(query)
    }
    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      isStolen ? [] : try await base.lease(request)
    }
    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      isStolen ? false : try await base.save(record, fields, at: now)
    }
  }
}
