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
/// that claimed it until the lease runs out.
/// - Throws: every method throws ``DownloadError`` with `.ledger` when the ledger fails.
public protocol LedgerStore: Sendable {
  /// Who this store claims downloads for: unique to this opening.
  var owner: String { get }

  /// Adds downloads, or updates those whose id is known, all or none.
  ///
  /// A known download gets the new request and rank; when it had failed or was cancelled it waits
  /// again, at once. When it is finished it stays so. The order of the result is that of `additions`.
  func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome]

  /// One record.
  func record(_ id: DownloadID) async throws -> DownloadRecord?

  /// The records of several downloads, in no particular order; ids that there is no record of are left out. One that
  /// is named twice may come twice.
  ///
  /// One by one, unless the ledger has a faster way.
  func records(of ids: [DownloadID]) async throws -> [DownloadRecord]

  /// Records in an order, a page at a time.
  func records(_ query: LedgerQuery) async throws -> [DownloadRecord]

  /// How many records there are in each phase; with `tag`, of those that bear it.
  func counts(tag: String?) async throws -> [DownloadState.Phase: Int]

  /// Hands out waiting downloads that are due, in order of rank: each one that `select` takes becomes
  /// `transferring`, owned by ``owner`` until `lease`, with one attempt more.
  ///
  /// `select` is called inside the ledger's transaction, cheaply, once a candidate.
  func claim(
    at now: Date, lease: Date, select: @escaping @Sendable (Candidate) -> ClaimSelection
  ) async throws -> [DownloadRecord]

  /// Writes the named fields of a record that this owner holds.
  ///
  /// - Returns: false, and nothing is written, when the record is gone, is of another generation or is
  ///   held by somebody else: the caller must stop at once.
  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool

  /// Moves records that nobody holds from one of `phases` into another phase, all at once.
  /// They become due at once, and lose their error when they go to `waiting`.
  /// - Returns: the ids that were moved, at most 10,000 of them, and how many there were in all.
  func transition(
    _ selection: LedgerSelection, from phases: Set<DownloadState.Phase>, to phase: DownloadState.Phase, at now: Date
  ) async throws -> LedgerTransitionResult

  /// Forgets records that nobody else holds.
  /// - Returns: what was forgotten, so that the bytes can be removed; at most `limit` at a time.
  func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord]

  /// Extends the lease of everything this owner holds.
  func renewLeases(until lease: Date) async throws

  /// Gives back downloads whose lease has run out or whose owner is provably gone: they wait again.
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
}

/// A download to be added to a ledger.
public struct LedgerAddition: Sendable {
  /// What was asked for.
  public var request: DownloadRequest
  /// Its rank.
  public var rank: Rank
  /// Its order of arrival.
  public var arrival: Int64

  /// Makes an addition.
  public init(request: DownloadRequest, rank: Rank, arrival: Int64) {
    self.request = request
    self.rank = rank
    self.arrival = arrival
  }
}

/// What adding did.
public struct LedgerAddOutcome: Sendable {
  /// Whether the id was new.
  public var isNew: Bool
  /// The record as it is now.
  public var record: DownloadRecord

  /// Makes an outcome.
  public init(isNew: Bool, record: DownloadRecord) {
    self.isNew = isNew
    self.record = record
  }
}

/// What becomes of a candidate.
public enum ClaimSelection: Sendable, Hashable {
  /// Claim it.
  case take
  /// Leave it, look at the next.
  case skip
  /// Leave it and every other one from its host.
  case skipHost
  /// Leave it and stop looking.
  case stop
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

/// A question to the ledger.
public struct LedgerQuery: Sendable, Hashable {
  /// Only these phases; every one when `nil`.
  public var phases: Set<DownloadState.Phase>?
  /// Only those with the tag.
  public var tag: String?
  /// Which comes first.
  public var order: Order
  /// At most this many.
  public var limit: Int
  /// Leaves out this many first.
  public var offset: Int

  /// An order of records.
  public enum Order: String, Sendable, Hashable {
    /// The earliest added first.
    case arrival
    /// The next to be started first.
    case rank
    /// The last changed first.
    case latestChange
  }

  /// Asks a question.
  public init(
    phases: Set<DownloadState.Phase>? = nil, tag: String? = nil, order: Order = .arrival, limit: Int = 1000,
    offset: Int = 0
  ) {
    self.phases = phases
    self.tag = tag
    self.order = order
    self.limit = limit
    self.offset = offset
  }
}

/// The fields that a save writes.
public struct RecordFields: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: Int
  /// Makes a set from its bits.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Phase, due time, error, counters. Leaving the active phases gives the claim back.
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
