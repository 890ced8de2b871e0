public import Foundation

/// Keeps the record of every download over restarts. It holds no file bytes.
public protocol Ledger: Stage {
  /// Opens the ledger for one downloader.
  ///
  /// - Throws: ``DownloadError`` with `.ledger` when it cannot be opened.
  func open() async throws -> any LedgerStore
}

extension Ledger {
  /// Becomes the pipeline's ledger; the last one written counts.
  public func contribute(to parts: inout PipelineParts) { parts.ledger = self }
}

/// An open ledger.
///
/// Every call is atomic, and durable when it returns. Nothing may assume that it is the only user: other
/// processes, later other machines, may share the ledger, and a running download belongs to the owner
/// that leased it until the lease runs out. What becomes of a record is ``Lifecycle``'s business: a ledger applies
/// ``DownloadRecord/apply(_:)`` or the same in its own language, and writes no transition of its own.
///
/// A record that cannot be read is in no other record's way: calls for several records leave it out, a call for it
/// alone throws, adding its id again replaces it, and ``damaged()`` lists it.
/// - Throws: every method throws ``DownloadError`` with `.ledger` when the ledger fails.
public protocol LedgerStore: Sendable {
  /// The owner that this store leases downloads for: unique to this opening.
  var owner: String { get }

  /// Adds downloads, or updates those whose id is known, all or none.
  ///
  /// A known download gets the new request and rank, and ``Lifecycle/Event/addedAgain`` is applied to it; one that waits
  /// for a time becomes due only by that. It starts anew, as a new generation, where ``LedgerAddition/lost`` is its
  /// artifact, where it belongs to another location and is not active, and where its record is damaged. Whatever was
  /// added belongs to this store for ``LeaseScope/own``. The order of the result is that of `additions`.
  /// - Throws: ``DownloadError`` with `.inUse` for a download that is active at another location.
  func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome]

  /// One record.
  func record(_ id: DownloadID) async throws -> DownloadRecord?

  /// The records of several downloads, in no particular order; ids that there is no record of are left out. One that
  /// is named twice may come twice.
  ///
  /// One by one, unless the ledger has a faster way.
  func records(of ids: [DownloadID]) async throws -> [DownloadRecord]

  /// Records in an order, a page at a time.
  func records(_ query: DownloadQuery) async throws -> [DownloadRecord]

  /// The records that cannot be read. None, unless the ledger's medium can be damaged.
  func damaged() async throws -> [DamagedRecord]

  /// How many records there are in each phase; with `tag`, of those that bear it.
  func counts(tag: String?) async throws -> [DownloadState.Phase: Int]

  /// Hands out waiting downloads that are due, in order of rank: ``Lifecycle/Event/leased`` is applied to each one that
  /// the request selects, and it is owned by ``owner`` until the lease runs out.
  ///
  /// `select` is called inside the ledger's transaction, once for each download that it takes and once for each kind
  /// of candidate that it skips: downloads of other owners, at other locations, outside of the scope and with equal
  /// candidates cost nothing.
  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord]

  /// Writes the named fields of a record that this owner holds.
  ///
  /// - Returns: false, and nothing is written, when the record is gone, is of another generation or is
  ///   held by another owner: the caller must stop at once.
  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool

  /// Writes how runs have ended, then leases what comes next, in one commit.
  ///
  /// - Returns: what ``save(_:_:at:)`` says of each, and what was leased.
  func exchange(_ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date) async throws -> LedgerExchange

  /// Applies an event to the records of a selection that nobody holds and in whose phase it means something, all at
  /// once. Those that wait belong to this store then, for ``LeaseScope/own``.
  /// - Returns: the ids that were moved, at most 10,000 of them, and how many there were in all.
  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
  ) async throws -> LedgerTransitionResult

  /// Forgets records that no other owner holds, damaged ones too.
  /// - Returns: what was forgotten, so that the bytes can be removed; at most `limit` at a time. Of a damaged record at
  ///   least id and generation are right.
  func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord]

  /// Extends the lease of everything this owner holds.
  func renewLeases(until lease: Date) async throws

  /// Applies ``Lifecycle/Event/leaseLost`` to the downloads whose owner is provably gone, or whose lease has run out
  /// and whose owner is not provably alive.
  /// - Returns: how many.
  func reclaim(at now: Date) async throws -> Int

  /// When the next waiting download becomes due, if one waits for a time after `now`.
  func nextDue(after now: Date) async throws -> Date?

  /// Computes the rank of every waiting download anew.
  func rerank(_ rank: @escaping @Sendable (RankingContext) -> Rank) async throws

  /// Gives back what this owner holds and closes. Nothing may be called afterwards.
  func close() async throws
}

extension LedgerStore {
  /// One by one.
  public func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    var records: [DownloadRecord] = []
    for id in ids { if let record = try await record(id) { records.append(record) } }
    return records
  }

  /// None.
  public func damaged() async throws -> [DamagedRecord] { [] }

  /// One call after the other.
  public func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
  ) async throws -> LedgerExchange {
    var exchange = LedgerExchange()
    for save in saves { exchange.saved.append(try await self.save(save.record, save.fields, at: now)) }
    if let request { exchange.leased = try await lease(request) }
    return exchange
  }
}

/// Which records a bulk operation means.
public enum LedgerSelection: Sendable, Hashable {
  /// Every one.
  case all
  /// Those with the tag.
  case tag(String)
  /// The named ones.
  case ids([DownloadID])
}

/// What a bulk transition did.
public struct LedgerTransitionResult: Sendable, Hashable {
  /// The ids that were moved, at most 10,000.
  public var ids: [DownloadID]
  /// How many were moved.
  public var count: Int

  /// Makes a result.
  public init(ids: [DownloadID], count: Int) {
    self.ids = ids
    self.count = count
  }
}

/// The fields that a save writes.
public struct RecordFields: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: Int
  /// Makes a set from its bits.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Phase, due time, error, counters. Leaving the active phases gives the lease back.
  public static let state = RecordFields(rawValue: 1)
  /// What is on disk and which representation it belongs to.
  public static let checkpoint = RecordFields(rawValue: 2)
  /// What the steps have done, and the artifact.
  public static let steps = RecordFields(rawValue: 4)
  /// The request and its rank.
  public static let request = RecordFields(rawValue: 8)
  /// Of the request only what an attempt itself changes: URL, header fields and head start. What others have changed of
  /// it meanwhile stays.
  public static let link = RecordFields(rawValue: 16)
}
