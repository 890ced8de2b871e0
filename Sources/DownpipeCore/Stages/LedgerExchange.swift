public import Foundation

// What goes into a ledger and comes out of it: additions, leases, saves.

/// A download to be added to a ledger.
public struct LedgerAddition: Sendable {
  /// What was asked for.
  public var request: DownloadRequest
  /// Its order of arrival; a known download keeps its own.
  public var arrival: Int64
  /// The ``Storage/location`` that it belongs to.
  public var location: String?
  /// An artifact that is gone: the finished download that it belongs to starts anew.
  public var lost: StoredArtifact?
  /// What becomes of a download whose id is known.
  public var ifKnown: KnownDownload

  /// Makes an addition.
  public init(
    request: DownloadRequest, arrival: Int64, location: String? = nil, lost: StoredArtifact? = nil,
    ifKnown: KnownDownload = .update
  ) {
    self.request = request
    self.arrival = arrival
    self.location = location
    self.lost = lost
    self.ifKnown = ifKnown
  }
}

/// What adding did.
public struct LedgerAddOutcome: Sendable {
  /// Whether the id was new, or starts anew.
  public var isNew: Bool
  /// The record as it is now.
  public var record: DownloadRecord

  /// Makes an outcome.
  public init(isNew: Bool, record: DownloadRecord) {
    self.isNew = isNew
    self.record = record
  }
}

/// A record that cannot be read.
public struct DamagedRecord: Sendable, Hashable {
  /// The download's name.
  public var id: DownloadID
  /// What is wrong with it, in words.
  public var reason: String

  /// Describes a damaged record.
  public init(id: DownloadID, reason: String) {
    self.id = id
    self.reason = reason
  }
}

/// Which downloads a store leases.
public enum LeaseScope: Sendable, Hashable {
  /// Every one.
  case all
  /// Those that were added, resumed or restarted through this store.
  case own
  /// Those with the tag.
  case tag(String)
  /// The named ones.
  case ids(Set<DownloadID>)
}

/// What a lease is asked for.
public struct LeaseRequest: Sendable {
  /// The time now: what is due by then may be leased.
  public var now: Date
  /// When the lease runs out unless it is renewed.
  public var until: Date
  /// Which downloads are meant.
  public var scope: LeaseScope
  /// Only downloads that belong to this ``Storage/location``, or to none; every one when `nil`.
  public var location: String?
  /// What becomes of a candidate. Cheap, and called inside the ledger's transaction.
  public var select: @Sendable (Candidate) -> LeaseSelection

  /// Asks for a lease.
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

/// What becomes of a candidate.
public enum LeaseSelection: Sendable, Hashable {
  /// Lease it.
  case take
  /// Leave it and all that are alike, look at the next.
  case skip
  /// Leave it and stop looking.
  case stop
}

/// A record to be saved, and which of its fields.
public struct LedgerSave: Sendable {
  /// The record.
  public var record: DownloadRecord
  /// What is written of it.
  public var fields: RecordFields

  /// Names a record and its fields.
  public init(_ record: DownloadRecord, _ fields: RecordFields) {
    self.record = record
    self.fields = fields
  }
}

/// What an exchange with the ledger did.
public struct LedgerExchange: Sendable {
  /// Whether each record was saved, in the order of the saves.
  public var saved: [Bool] = []
  /// What was leased, in order of rank.
  public var leased: [DownloadRecord] = []

  /// Nothing.
  public init() {}
}
