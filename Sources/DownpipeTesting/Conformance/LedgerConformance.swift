@_spi(Ledger) public import DownpipeCore
import Foundation

/// Checks that a ledger keeps the contract of ``/DownpipeCore/Ledger`` and ``/DownpipeCore/LedgerStore``.
///
/// ```swift
/// let folder = try TemporaryFolder()
/// try await LedgerConformance { MyLedger(folder.path(UUID().uuidString)) }.run()
/// ```
/// Each rule requests a new, empty ledger and opens it once or several times. All openings of one ledger must have the
/// same records, because they stand for several processes and for restarts.
@_spi(Ledger) public struct LedgerConformance: Sendable {
  let make: @Sendable () async throws -> any Ledger
  let exclusions: [ConformanceExclusion]
  let limit: Duration
  let damage: (@Sendable (any Ledger, DownloadID) async throws -> Void)?
  let openAhead: (@Sendable (any Ledger, Duration) async throws -> any LedgerStore)?
  /// The rules to check; `nil` for all.
  package var only: Set<String>?

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - exclusions: Rules that are not checked, each with its reason.
  ///   - limit: The longest time for a rule.
  ///   - damage: Makes a record of a ledger unreadable, like a fault of its medium. Without it the rules about damaged
  ///     records are not checked.
  ///   - openAhead: Opens a ledger as on a machine whose clock is ahead of the ledger's by a duration, or behind it by a
  ///     negative one. Without it the rules about clocks that differ are not checked: the processes of one machine have one
  ///     clock.
  ///   - make: Makes a new, empty ledger on each call.
  public init(
    excluding exclusions: [ConformanceExclusion] = [], limit: Duration = .hangLimit,
    damaging damage: (@Sendable (any Ledger, DownloadID) async throws -> Void)? = nil,
    openingAhead openAhead: (@Sendable (any Ledger, Duration) async throws -> any LedgerStore)? = nil,
    _ make: @escaping @Sendable () async throws -> any Ledger
  ) {
    self.make = make
    self.exclusions = exclusions
    self.limit = limit
    self.damage = damage
    self.openAhead = openAhead
  }

  /// Checks every rule.
  ///
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("LedgerConformance", excluding: exclusions, only: only, limit: limit)
    await checkOpening(report)
    await checkAdding(report)
    await checkMerging(report)
    await checkChanging(report)
    await checkRefreshing(report)
    await checkUpdating(report)
    await checkRanking(report)
    await checkKeeping(report)
    await checkLeasing(report)
    await checkSharedLimits(report)
    await checkSharedRates(report)
    await checkSettings(report)
    await checkDueTimes(report)
    await checkClocks(report)
    await checkSaving(report)
    await checkLeases(report)
    await checkTransitions(report)
    await checkRemoving(report)
    await checkQueries(report)
    await checkFilters(report)
    await checkUpdatingMany(report)
    await checkScopes(report)
    await checkLocations(report)
    await checkExchanges(report)
    await checkNumbers(report)
    await checkEvents(report)
    await checkTotals(report)
    await checkDependencies(report)
    await checkRestoring(report)
    await checkOthers(report)
    await checkDamage(report)
    try report.finish()
  }

  // MARK: Fixtures

  /// The start of the suite's time.
  static let start = Date(timeIntervalSince1970: 1_700_000_000)

  static func time(_ seconds: Double) -> Date { start.addingTimeInterval(seconds) }

  /// A request whose intent is its id, so that candidates can be distinguished.
  static func request(
    _ id: DownloadID, host: String = "example.org", tags: Set<String> = []
  ) throws -> DownloadRequest {
    try DownloadRequest("https://\(host)/file", id: id, intent: Intent(id.rawValue), tags: tags)
  }

  /// An addition whose arrival is `order`, which is its rank until a store ranks it.
  static func addition(
    _ id: DownloadID, order: Int64, host: String = "example.org", tags: Set<String> = [], location: String? = nil
  ) throws -> LedgerAddition {
    LedgerAddition(
      request: try request(id, host: host, tags: tags), arrival: order, location: location)
  }

  /// A new ledger with one opening.
  func opened() async throws -> (ledger: any Ledger, store: any LedgerStore) {
    let ledger = try await make()
    return (ledger, try await ledger.open())
  }

  /// A new ledger with one opening and the given downloads, which rank in that order.
  func filled(_ ids: [DownloadID]) async throws -> (ledger: any Ledger, store: any LedgerStore) {
    let (ledger, store) = try await opened()
    let additions = try ids.enumerated().map { try Self.addition($1, order: Int64($0 + 1)) }
    _ = try await store.add(additions, at: Self.start)
    return (ledger, store)
  }
}

extension LedgerStore {
  /// Leases the given downloads, or all that are due.
  func leased(
    _ ids: Set<DownloadID>? = nil, at now: Date = LedgerConformance.start, until: Date = LedgerConformance.time(60),
    scope: LeaseScope = .all, location: String? = nil
  ) async throws -> [DownloadRecord] {
    try await lease(
      LeaseRequest(now: now, until: until, scope: scope, location: location) { candidate in
        ids?.contains(DownloadID(candidate.intent.rawValue)) ?? true ? .take : .skip
      })
  }

  /// Moves a waiting download to a phase, as the engine does.
  func bring(
    _ id: DownloadID, to phase: DownloadState.Phase, at now: Date = LedgerConformance.start,
    _ change: (inout DownloadRecord) -> Void = { _ in }
  ) async throws {
    var record = try expectValue(
      try await leased([id], at: now).first, "the waiting download “\(id)” was not leased")
    record.phase = phase
    change(&record)
    try expect(
      try await save(record, [.state, .checkpoint, .steps], at: now),
      "the owner's save of the leased download “\(id)” was refused")
  }

  /// A record that must exist.
  func known(_ id: DownloadID) async throws -> DownloadRecord {
    try expectValue(try await record(id), "the download “\(id)” is not in the ledger")
  }
}
