public import Foundation

/// Keeps the record of every download over restarts. It holds no file bytes.
public protocol Ledger: Stage {
  /// Opens the ledger for one downloader.
  ///
  /// - Throws: ``DownloadError`` with `.ledger` when it cannot be opened.
  func open() async throws -> any LedgerStore
}

extension Ledger {
  /// Becomes the pipeline's ledger.
  public func contribute(to parts: inout PipelineParts) { parts.ledgers.append(self) }
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
  /// A known download keeps its arrival, and ``LedgerAddition/ifKnown`` says what else becomes of it. It starts anew, as
  /// a new generation, where ``LedgerAddition/lost`` is its artifact, where it belongs to another location and is not
  /// active, and where its record is damaged. Whatever was added belongs to this store for ``LeaseScope/own``. The
  /// order of the result is that of `additions`.
  /// - Throws: ``DownloadError`` with `.inUse` for a download that is active at another location.
  func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome]

  /// Changes what a download is asked for, in one step, whoever holds it.
  ///
  /// Of the record only `request`, `added` and `location` are written, and `artifact` and `note` of `steps` unless
  /// another owner holds it; the id stays as it is. Where `added` was `nil` and the request has changed, `added` becomes
  /// the request as it was. The rank is computed anew. Nothing is written where nothing has changed.
  /// - Parameter change: Makes the change: cheap, and called inside the ledger's transaction. What it throws goes
  ///   through, and nothing is written.
  /// - Returns: the record as it is now; `nil` when there is none.
  func update(
    _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord?

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

  /// How many bytes the downloads have, and are going to have; with `tag`, those that bear it. Costs far less than
  /// reading their records.
  func totals(tag: String?) async throws -> DownloadTotals

  /// Finished downloads whose ``StepLog/note`` is there still: their artifact was being moved when the process ended.
  /// None, unless the ledger says otherwise.
  func unsettledMoves() async throws -> [DownloadRecord]

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

  /// Applies an event to the records of a selection that no owner holds and to which it means something, all at once.
  /// Those that wait belong to this store then, for ``LeaseScope/own``.
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

  /// Ranks what this store adds and changes from now on, and whatever has ranks of another ranking.
  ///
  /// The first call of a store ranks anew only where the ledger's ranks go by another name, or by none that is known;
  /// each later call does so always, because a policy that replaces another may differ from it in more than its name.
  /// All that has not finished is ranked, a batch at a time: other calls go on in between. The ledger's name is taken
  /// away before the first batch and written after the last one, so that the next opening ranks anew what a crash has
  /// left half done. Until the first call the order of arrival counts, ``Ranking/arrival``.
  ///
  /// Stores that share a ledger should rank alike: where one adds by another ranking than the ledger's, the name is taken
  /// away, and the next opening ranks all of it.
  func rank(by ranking: Ranking) async throws

  /// Yields after another store of the same ledger in this process has committed a change that this one may care
  /// about: something was added, changed, moved, removed, or has ended. Leases and checkpoints are none, nor is what this
  /// store does itself. Changes that come faster than they are read are told once. One reader; ends when the store is
  /// closed. `nil` for a ledger that does not know.
  var changesByOthers: AsyncStream<Void>? { get }

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

  /// None.
  public func unsettledMoves() async throws -> [DownloadRecord] { [] }

  /// None.
  public var changesByOthers: AsyncStream<Void>? { nil }

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
  /// What an attempt itself changes of the request: URL, header fields and head start. What others have changed of it
  /// meanwhile stays, ``DownloadRecord/added`` keeps what was asked for, and the rank is computed anew.
  public static let link = RecordFields(rawValue: 16)
}
