public import Foundation

// The values that a ledger takes and returns: additions, leases, saves.

/// A download to be added to a ledger.
@_spi(Ledger) public struct LedgerAddition: Sendable {
  /// The request of the download.
  public var request: DownloadRequest
  /// The download's place in the order of arrival. A known download keeps its own.
  public var arrival: Int64
  /// The ``Storage/location`` that the download belongs to; `nil` for none.
  public var location: String?
  /// An artifact that no longer exists. A finished download with this artifact starts again.
  public var lost: StoredArtifact?
  /// What happens to a download whose id is known.
  public var ifKnown: KnownDownload
  /// Whether a new download is paused from the start: no owner can lease it before it is resumed. A known download keeps
  /// its phase.
  public var isPaused: Bool

  /// Creates an addition.
  public init(
    request: DownloadRequest, arrival: Int64, location: String? = nil, lost: StoredArtifact? = nil,
    ifKnown: KnownDownload = .update, isPaused: Bool = false
  ) {
    self.isPaused = isPaused
    self.request = request
    self.arrival = arrival
    self.location = location
    self.lost = lost
    self.ifKnown = ifKnown
  }
}

/// The result of adding one download.
@_spi(Ledger) public struct LedgerAddOutcome: Sendable {
  /// Whether the id was new or the download starts again.
  public var isNew: Bool
  /// The record after the addition.
  public var record: DownloadRecord

  /// Creates an outcome.
  public init(isNew: Bool, record: DownloadRecord) {
    self.isNew = isNew
    self.record = record
  }
}

/// The conditions of a lease.
@_spi(Ledger) public struct LeaseRequest: Sendable {
  /// The current time. Downloads that are due by then may be leased.
  public var now: Date
  /// The time at which the lease expires unless it is renewed.
  public var until: Date
  /// The downloads that may be leased.
  public var scope: LeaseScope
  /// The ``Storage/location`` that downloads must belong to, unless they belong to none; all locations when `nil`.
  public var location: String?
  /// The current instant of ``TimeSource/now``, for ``LeaseSelection/hold(until:)``.
  public var instant: Duration = .zero
  /// A number that differs from that of the previous request when candidates that were held must be considered again.
  public var rulesVersion = 0
  /// The order of groups of candidates, before the order of rank; `nil` if only the rank decides. It does not change
  /// while ``rulesVersion`` stays the same.
  public var order: CandidateOrder?
  /// The limits for all owners of the ledger together; `nil` if there are none. A ledger with
  /// ``LedgerStore/countsForAll`` asks for those of a candidate before it asks ``select``, and skips a candidate whose
  /// limit is reached by the leased downloads of all owners.
  public var sharedLimits: (@Sendable (Candidate) -> [SharedLimit])?
  /// Decides whether a candidate is leased. It must be cheap, because it is called inside the ledger's transaction. The
  /// candidate has the size of the download that is leased next.
  public var select: @Sendable (Candidate) -> LeaseSelection

  /// Whether it is for downloads that were started by hand, beyond limits: for those who watch a ledger.
  package var isByHand = false

  /// Creates a lease request.
  public init(
    now: Date, until: Date, scope: LeaseScope = .all, location: String? = nil,
    select: @escaping @Sendable (Candidate) -> LeaseSelection
  ) {
    self.now = now
    self.until = until
    self.scope = scope
    self.location = location
    self.select = select
  }
}

/// The decision about a candidate for a lease.
@_spi(Ledger) public enum LeaseSelection: Sendable, Hashable {
  /// Leases the candidate.
  case take
  /// Skips the candidate and those with the same ``Candidate/withoutSize``, and goes on with the next.
  case skip
  /// Like ``skip``, and the ledger may skip them in later leases too, without asking: until the given instant of
  /// ``TimeSource/now``, or without a limit if there is none, and while the requests have the same
  /// ``LeaseRequest/rulesVersion``.
  ///
  /// So a million downloads behind a closed gate cost one question and not one with each lease.
  case hold(until: Duration?)
  /// Skips the candidate and ends the search.
  case stop
}

/// A record to be saved, and which of its fields.
@_spi(Ledger) public struct LedgerSave: Sendable {
  /// The record.
  public var record: DownloadRecord
  /// The fields that are written.
  public var fields: RecordFields

  /// Creates a save of the given fields of a record.
  public init(_ record: DownloadRecord, _ fields: RecordFields) {
    self.record = record
    self.fields = fields
  }
}

/// The result of an exchange with the ledger.
@_spi(Ledger) public struct LedgerExchange: Sendable {
  /// Whether each record was saved, in the order of the saves.
  public var saved: [Bool] = []
  /// The leased records, in order of rank.
  public var leased: [DownloadRecord] = []
  /// Whether the saves may have released downloads that wait for a due time, so that ``LedgerStore/nextDue(after:)`` has
  /// to be asked again.
  public var mayHaveReleasedDelayed = false

  /// The downloads that finished or failed with an earlier request than the present one, and wait again.
  public var reopened: Set<DownloadID> = []

  /// Whether the exchange had taken effect before it was made again: what was leased was leased then.
  package private(set) var isGivenAgain = false

  /// Creates an empty result.
  public init() {}
}

extension LedgerExchange {
  /// Whether the exchange has changed something, so that its answer has to be kept.
  public var hasChanges: Bool { !leased.isEmpty || saved.contains(true) }

  /// What a ledger keeps to give this answer again: a few bytes for each save and each leased record.
  /// - Parameter saves: The saves of the exchange.
  public func kept(for saves: [LedgerSave]) -> String {
    var text = ""
    for (save, isSaved) in zip(saves, saved) {
      text += isSaved ? (reopened.contains(save.record.id) ? "r" : "s") : "-"
    }
    if mayHaveReleasedDelayed { text += "d" }
    for record in leased { text += " \(record.generation)" }
    return text
  }

  /// The answer that ``kept(for:)`` has made this text of.
  /// - Parameters:
  ///   - text: What was kept.
  ///   - saves: The saves of the exchange, which are the same ones.
  ///   - held: The records of these generations that the owner holds.
  /// - Throws: What `held` throws; ``DownloadError`` with `.ledger` if the text is of other saves.
  public init(kept text: String, for saves: [LedgerSave], _ held: ([Int64]) throws -> [DownloadRecord]) throws {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    var marks = parts[0]
    mayHaveReleasedDelayed = marks.last == "d"
    if mayHaveReleasedDelayed { marks.removeLast() }
    guard marks.count == saves.count else {
      throw DownloadError(.ledger, "the number of an exchange was used for another one")
    }
    saved = marks.map { $0 != "-" }
    reopened = Set(zip(saves, marks).filter { $1 == "r" }.map(\.0.record.id))
    leased = parts.count > 1 ? try held(parts.dropFirst().compactMap { Int64($0) }) : []
    // No run has begun: the bytes are of an earlier request if that has changed since.
    for index in leased.indices { leased[index].dropOutdatedWork() }
    isGivenAgain = true
  }
}
