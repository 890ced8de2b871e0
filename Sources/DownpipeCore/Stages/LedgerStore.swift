public import Foundation
internal import Synchronization

/// An open ledger.
///
/// Every call is atomic, and durable when it returns. Other processes, and later other machines, may use the same
/// ledger at the same time. The owner that has leased a download holds it until the lease expires. ``Lifecycle``
/// governs the transitions of a record: a ledger applies ``DownloadRecord/apply(_:)`` or an equivalent in its own
/// language, and defines no transition itself.
///
/// A record that cannot be read does not affect other records: calls for several records leave it out, and a call for
/// this record alone throws. Adding its id again replaces it, and ``damaged()`` lists it.
///
/// All times that a store takes and returns are by the clock of its machine. The clocks of several machines may be hours
/// apart: a ledger that machines share keeps ``DownloadRecord/notBefore`` and the ends of leases by a clock of its own, and
/// its stores translate them, so that what one machine has delayed is due for all of them at the same moment. Dates of a
/// request, such as ``DownloadRequest/deadline``, are the user's and stay as they are.
/// - Throws: Every method throws ``DownloadError`` with `.ledger` when the ledger fails.
@_spi(Ledger) public protocol LedgerStore: Sendable {
  /// The owner that this store leases downloads for. It is unique to this opening of the ledger.
  var owner: String { get }

  /// Whether another owner may take over a download whose lease has expired although its owner still works on it, because
  /// it cannot see that: its runs stop before their leases expire, and publish nothing afterwards. The default is `false`,
  /// for ledgers whose owners can tell whether another one is alive.
  var leasesExpire: Bool { get }

  /// Whether leases keep ``LeaseRequest/sharedLimits``. The default is `false`.
  var countsForAll: Bool { get }

  /// Whether ``leaseRates(_:for:at:)`` works. The default is `false`.
  var leasesRates: Bool { get }

  // **Additions, updates, transitions and removals have a number**, so that an answer which was lost does no harm. The ledger
  // keeps the number and what its answer says (LedgerAnswer) in the same transaction, for each owner that of the last one,
  // until that owner has ended. After a failure the same change may be made again with the same number, before any other one
  // with a number; if it has taken effect, it changes nothing, and answers as the first time. An earlier attempt that is still
  // under way is waited for, or never takes effect. The numbers of a store grow; those of exchanges are others. Changes that
  // are never made again have none.

  /// Adds downloads, or updates the downloads whose id is known. Either all additions are applied or none.
  ///
  /// ``DownloadRecord/waitsFor`` is set from ``DownloadRequest/after``: to the downloads that have not finished.
  ///
  /// A known download keeps its arrival; ``LedgerAddition/ifKnown`` decides what else is updated. A finished download
  /// whose request now asks for another file waits again, as after ``Lifecycle/Event/restart``; one whose request asks for
  /// a refresh (``DownloadRequest/Refresh``) does so as after ``Lifecycle/Event/refresh``. The download starts
  /// again, with a new generation, in three cases: its artifact is ``LedgerAddition/lost``, it belongs to another
  /// location and is not active, or its record is damaged. All additions are in this store's ``LeaseScope/own`` scope.
  /// - Returns: The outcomes, in the order of `additions`.
  /// - Throws: ``DownloadError`` with `.inUse` for a download that is active at another location; with
  ///   `.invalidRequest` if downloads would wait for each other in a cycle after the call.
  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome]

  /// Puts whole records into the ledger, as another ledger has kept them. Either all are put or none.
  ///
  /// A record whose id is known is left alone, also if the known one is damaged; of several records with the same id, the
  /// first one counts. ``DownloadRecord/rank`` is computed again, by this store's ranking. An active record is put as after
  /// ``Lifecycle/Event/leaseLost``. All records are in this store's ``LeaseScope/own`` scope.
  ///
  /// A record keeps its ``DownloadRecord/generation`` if that is larger than every one that this ledger has given, and
  /// with it its partial if it has the same storage; otherwise it gets a new one, in the order of `records`. A record that
  /// gets another generation and has not finished loses its checkpoint and the results of its steps, which belong to the
  /// partial of the former one.
  ///
  /// ``DownloadRecord/waitsFor`` loses the downloads that have finished here, and those that ``DownloadRequest/after``
  /// does not name. A record that is put as finished releases the downloads that wait for it, as after a save.
  /// - Parameter now: The time of the change, for downloads that are released. The records keep their own times.
  /// - Returns: Whether each record was put, in the order of `records`.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if downloads would wait for each other in a cycle after the call.
  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool]

  /// Changes the request of a download in one transaction, also while another owner holds the download.
  ///
  /// Only `request`, `added` and `location` of the record are written, and, unless another owner holds the download,
  /// `earlierArtifact`, `leftArtifacts`, and the `artifact` and `note` of `steps`. The id cannot be changed. If `added` was
  /// `nil` and the request changes, `added` becomes the previous request. The rank and ``DownloadRecord/waitsFor`` are
  /// computed again; a dependency that the request had already is not. If nothing has changed, nothing is written. A
  /// changed URL, size or digest applies to the bytes and steps, too: a finished download waits again, as after
  /// ``Lifecycle/Event/restart``, and is in this store's ``LeaseScope/own`` scope.
  ///
  /// An owner that changes the URL, and sets ``DownloadRecord/awaited`` from `.link` to `nil`, has refreshed its link: what it
  /// has done and does is for the fresh link, and is kept if its process ends.
  /// - Parameters:
  ///   - id: The download.
  ///   - now: The time of the change, for ``DownloadRecord/updatedAt``.
  ///   - change: Makes the change. It must be cheap, because it is called inside the ledger's transaction. An error
  ///     that it throws is passed on, and nothing is written.
  /// - Returns: The record after the change; `nil` when there is no such record.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if downloads would wait for each other in a cycle.
  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord?

  /// Changes the requests of all selected records in one transaction, also while other owners hold them. Either all
  /// changes are written or none.
  ///
  /// What holds for the update of one record holds for each of these. A selection is judged before the first change, so
  /// a change cannot add records to it or remove records from it. Records that cannot be read are left out. At most the
  /// keys of the selected records are held in memory, not the records.
  /// - Parameters:
  ///   - selection: The records to change.
  ///   - now: The time of the change, for ``DownloadRecord/updatedAt``.
  ///   - change: Makes the change. It is called once for each record, inside the ledger's transaction. An error that it
  ///     throws is passed on, and nothing is written.
  /// - Returns: The ids of the changed records, at most 10,000, and the number of changed records.
  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult

  /// Returns one record; `nil` when there is no such record.
  func record(_ id: DownloadID) async throws -> DownloadRecord?

  /// Returns the records of several downloads, in no particular order.
  ///
  /// Ids without a record are left out. The result may contain a record twice when its id is given twice. The default
  /// implementation reads the records one by one.
  func records(of ids: [DownloadID]) async throws -> [DownloadRecord]

  /// Returns the records that a query selects, in its order, one page at a time.
  func records(_ query: DownloadQuery) async throws -> [DownloadRecord]

  /// Returns the records whose generation is larger than a given one, in the order of their generations: at most
  /// `limit`, and fewer only if there are no more.
  ///
  /// So a ledger of any size is read page by page, each of which costs the same, while other calls change it. The default
  /// implementation reads all records for each page.
  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord]

  /// Returns the records that cannot be read. The default implementation returns none.
  func damaged() async throws -> [DamagedRecord]

  /// Returns the number of records in each phase, of the records that match a filter.
  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int]

  /// Returns how many bytes the downloads that match a filter have received and how many they expect. It costs far less
  /// than reading their records.
  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals

  /// Returns finished downloads that still have a ``StepLog/note``: their artifact was being moved when the process
  /// ended. The default implementation returns none.
  func unsettledMoves() async throws -> [DownloadRecord]

  /// Leases waiting downloads that are due and wait for no other download, in order of rank.
  ///
  /// ``Lifecycle/Event/leased`` is applied to each download that the request selects, and ``owner`` holds it until the
  /// lease expires.
  ///
  /// `select` is called inside the ledger's transaction: once for each download that it takes, and once for each
  /// distinct candidate that it skips. It is not called for downloads of other owners, at other locations, or outside
  /// the scope.
  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord]

  /// Writes the given fields of a record that this owner holds.
  ///
  /// A save with `.state` of a download that is not active is the outcome for the request of `record`. If the ledger's
  /// request asks for something else by now, the download does not stay finished or failed, but waits again.
  ///
  /// A save that finishes a download removes its id from the ``DownloadRecord/waitsFor`` of all records, in the same
  /// transaction and at a cost that grows only with their number.
  /// - Returns: `false`, and nothing is written, when the record does not exist, has another generation or is held by
  ///   another owner. The caller must stop at once.
  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool

  /// Saves the outcomes of runs and then leases the next downloads, in one commit.
  ///
  /// **An exchange has a number**, so that an answer which was lost does no harm. The ledger keeps the number and what its
  /// answer says (``LedgerExchange/kept(for:)``) in the same commit, for each owner the last one, until that owner has ended.
  /// After a failure the same saves are given again with the same number, until there is an answer. An exchange that has taken
  /// effect changes nothing then, and answers as the first time: of what it had leased, it gives those records that this owner
  /// still holds, as they are now, but for what was done for an earlier request. An earlier attempt that is still under way is
  /// waited for, or never takes effect.
  /// - Parameters:
  ///   - saves: The records to save.
  ///   - request: Which downloads are leased; `nil` for none.
  ///   - now: The time of the change.
  ///   - number: Larger than those of all other exchanges of this store; `nil` for an exchange that is never made again.
  /// - Returns: For each save the result of ``save(_:_:at:)``, and the leased records.
  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange

  /// Applies an event to all selected records that no owner holds and that have a transition for it, in one
  /// transaction.
  ///
  /// The selection is judged before the first change: a record that the event brings into another phase is not moved
  /// again.
  /// Records that wait after the event are in this store's ``LeaseScope/own`` scope. ``Lifecycle/Event/restart``
  /// and ``Lifecycle/Event/refresh`` compute the rank again: the size of the file is no longer known, and finished
  /// downloads are not ranked.
  /// - Returns: The ids of the changed records, at most 10,000, and the number of changed records.
  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult

  /// Removes records that no other owner holds, including damaged ones, and keeps what they leave on disk, in one
  /// transaction. Either all chosen records are removed or none.
  ///
  /// - Parameters:
  ///   - selection: The records to remove.
  ///   - choose: Returns what a selected record leaves, and `nil` if it is not removed. It is called once for each, inside
  ///     the ledger's transaction, so it must be cheap. When the ledger fails, what it has noted is void. For a damaged record
  ///     only id and generation are certain.
  /// - Returns: The number of removed records, and the numbers under which the ledger keeps what they leave.
  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval

  /// Returns what removed records have left at a location and has not been deleted, in the order of its numbers.
  /// - Parameters:
  ///   - location: The ``LedgerDeletion/location``.
  ///   - numbers: The numbers to look for.
  ///   - limit: The most that are returned. Fewer are only returned if there are no more.
  func deletions(at location: String?, in numbers: ClosedRange<Int64>, limit: Int) async throws -> [LedgerDeletion]

  /// Forgets what has been deleted, by its numbers. Those that the ledger does not have are left out.
  func forget(deletions numbers: [Int64]) async throws

  /// Extends the leases of all downloads that this owner holds.
  func renewLeases(until lease: Date) async throws

  /// Takes what this machine lacks, so that it pauses; `nil` when nothing is wrong any longer. A ledger that machines share
  /// shows it to those who look at its workers. It returns at once. The default implementation does nothing.
  func note(machineFault fault: DownloadError?)

  /// Leases shares of rates that all owners share, as ``RateShares`` divides them.
  ///
  /// At no instant are the shares of all owners that have not expired more than the rate together. A share takes the place of
  /// the owner's earlier one. The calls of one store come one after the other. When the store is closed, its shares are free.
  /// The default implementation throws.
  /// - Parameters:
  ///   - wants: What this owner wants. Each has another key.
  ///   - duration: How long a share is valid among few owners. With many, a ledger may lease it for longer.
  ///   - now: The present time, for ledgers that have no clock of their own.
  /// - Returns: The shares, in the order of the wants.
  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare]

  /// Applies ``Lifecycle/Event/leaseLost`` to downloads whose owner has provably ended, or whose lease has expired and
  /// whose owner is not provably alive.
  /// - Returns: The number of downloads.
  func reclaim(at now: Date) async throws -> Int

  /// Returns the earliest time after `now` at which a waiting download becomes due; `nil` when no download waits for a
  /// time. Downloads that wait for another one are left out.
  func nextDue(after now: Date) async throws -> Date?

  /// Returns whether a download is active, or can become active without a command for a download.
  ///
  /// A download that waits for another one does not count: the other one counts itself, unless it is paused, has failed,
  /// was cancelled or does not exist. The default implementation reads the records of the waiting downloads.
  func isBusy() async throws -> Bool

  /// Sets the ranking for the downloads that this store adds or changes, and ranks existing downloads again when their
  /// ranks come from another ranking.
  ///
  /// The first call on a store ranks existing downloads again only if the ledger names another ranking or none. Each
  /// later call always does, because a policy can differ from the one it replaces in more than its name. Downloads that
  /// have not finished are ranked batch by batch, and other calls run in between. The ledger removes its ranking's
  /// name before the first batch and writes the new one after the last, so that the next opening repeats a ranking that
  /// a crash has interrupted. Until the first call, downloads are ranked by ``Ranking/arrival``.
  ///
  /// Stores that share a ledger should use the same ranking. When a store adds with another ranking than the ledger's,
  /// the name is removed and the next opening ranks all downloads again.
  func rank(by ranking: Ranking) async throws

  /// Returns the settings that ``keep(settings:)`` has stored last; `nil` if there are none. The default implementation
  /// returns `nil`.
  func settings() async throws -> Data?

  /// Stores the settings of an app, such as the number of downloads at once, in place of earlier ones.
  ///
  /// They are at most 1 MiB of UTF-8 text. The default implementation keeps nothing.
  func keep(settings: Data) async throws

  /// A stream that yields after another store of the same ledger in this process has committed a relevant change; `nil`
  /// for a ledger that cannot report such changes.
  ///
  /// A change is relevant when a download was added, changed, moved or removed, or has ended. Leases, checkpoints and
  /// this store's own changes are not reported. Changes that occur faster than they are read are merged. The stream has
  /// one reader and ends when the store is closed.
  var changesByOthers: AsyncStream<Void>? { get }

  /// Returns whether another process has committed a relevant change since the last call; `nil` for a ledger that
  /// cannot tell, or that no other process can use.
  ///
  /// A change is relevant as for ``changesByOthers``. Changes by other stores in this process may count, too, but not
  /// this store's own. While something is watched, awaited or queued, a downloader calls this twice in a second, so it
  /// must cost next to nothing. After `nil` it is not called again. The default implementation returns `nil`.
  func hasChangesByOtherProcesses() async throws -> Bool?

  /// Releases all downloads that this owner holds and closes the store. No other method may be called afterwards.
  func close() async throws
}

extension LedgerStore {
  /// The default: nothing is shown.
  public func note(machineFault fault: DownloadError?) {}

  /// Reads the records one by one.
  public func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    var records: [DownloadRecord] = []
    for id in ids { if let record = try await record(id) { records.append(record) } }
    return records
  }

  /// Reads all records.
  public func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    let later = try await records(DownloadQuery()).filter { $0.generation > generation }
    return Array(later.sorted { $0.generation < $1.generation }.prefix(max(0, limit)))
  }

  /// Reads the records of the waiting downloads, until one of them waits for no other download.
  public func isBusy() async throws -> Bool {
    let counts = try await counts(.all)
    if counts.contains(where: { $0.key.isActive && $0.value > 0 }) { return true }
    var page = DownloadQuery(phases: [.waiting], limit: 1_000)
    while true {
      let records = try await records(page)
      if records.contains(where: { $0.waitsFor.isEmpty }) { return true }
      guard records.count == page.limit else { return false }
      page.offset += records.count
    }
  }

  /// The default: a download stays with its owner as long as that is alive.
  public var leasesExpire: Bool { false }

  /// The default: limits are those of each owner.
  public var countsForAll: Bool { false }

  /// The default: rates are those of each owner.
  public var leasesRates: Bool { false }

  /// The default: throws.
  public func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    throw DownloadError(.ledger, "this ledger cannot lease shares of rates: use a rate of each downloader")
  }

  /// The default: no damaged records.
  public func damaged() async throws -> [DamagedRecord] { [] }

  /// The default: no unsettled moves.
  public func unsettledMoves() async throws -> [DownloadRecord] { [] }

  /// The default: none.
  public func settings() async throws -> Data? { nil }

  /// The default: keeps nothing.
  public func keep(settings: Data) async throws {}

  /// The default: `nil`, changes by other stores are not reported.
  public var changesByOthers: AsyncStream<Void>? { nil }

  /// The default: `nil`, changes by other processes are not reported.
  public func hasChangesByOtherProcesses() async throws -> Bool? { nil }

  /// Removes records that no other owner holds, including damaged ones, in one transaction. Nothing is kept of them.
  /// - Returns: The removed records, all of them in memory.
  public func remove(_ selection: LedgerSelection) async throws -> [DownloadRecord] {
    let removed = Mutex<[DownloadRecord]>([])
    _ = try await remove(selection) { record in
      removed.withLock { $0.append(record) }
      return true
    }
    return removed.withLock { $0 }
  }

  /// Removes those of the selected records that are chosen, and keeps nothing of them.
  /// - Returns: The number of removed records.
  public func remove(
    _ selection: LedgerSelection, _ choose: @escaping @Sendable (DownloadRecord) -> Bool
  ) async throws -> Int {
    try await remove(selection, number: nil, leaving: { choose($0) ? LedgerDeletion(id: $0.id) : nil }).count
  }

  /// Adds downloads, in a change that is never made again.
  public func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    try await add(additions, at: now, number: nil)
  }

  /// Updates a download, in a change that is never made again.
  public func update(
    _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await update(id, at: now, number: nil, change)
  }

  /// Updates downloads, in a change that is never made again.
  public func update(
    _ selection: LedgerSelection, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await update(selection, at: now, number: nil, change)
  }

  /// Applies an event, in a change that is never made again.
  public func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
  ) async throws -> LedgerBulkResult {
    try await transition(selection, event, at: now, number: nil)
  }

  /// Saves outcomes and leases downloads, in an exchange that is never made again.
  public func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
  ) async throws -> LedgerExchange {
    try await exchange(saves, leasing: request, at: now, number: nil)
  }
}

/// The records that a bulk operation applies to.
@_spi(Ledger) public enum LedgerSelection: Sendable, Hashable {
  /// The records that match the filter.
  case matching(DownloadFilter)
  /// The records with these ids.
  case ids([DownloadID])

  /// All records.
  public static let all = LedgerSelection.matching(.all)
}

/// The result of a bulk operation.
@_spi(Ledger) public struct LedgerBulkResult: Sendable, Hashable {
  /// The ids of the changed records, at most 10,000.
  public var ids: [DownloadID]
  /// The number of changed records.
  public var count: Int

  /// The largest number of ids in a result.
  package static let mostIDs = 10_000

  /// Creates a result.
  public init(ids: [DownloadID] = [], count: Int = 0) {
    self.ids = ids
    self.count = count
  }

  /// Counts a changed record.
  package mutating func note(_ id: DownloadID) {
    count += 1
    if ids.count < Self.mostIDs { ids.append(id) }
  }
}
