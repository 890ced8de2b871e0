@_spi(Ledger) package import DownpipeCore

/// The attributes that decide whether a download can be leased, except its size; stored once for all downloads that
/// share them, in the table `kind`.
package struct Kind: Hashable, Sendable {
  package var location: String?
  package var candidate: Candidate

  package init(location: String?, candidate: Candidate) {
    self.location = location
    self.candidate = candidate.withoutSize
  }

  package init(_ record: DownloadRecord) { self.init(location: record.location, candidate: record.candidate) }

  /// Sets the attributes of a record.
  package func write(to record: inout DownloadRecord) {
    record.location = location
    record.request.intent = candidate.intent
    record.request.priority = candidate.priority
    record.request.tags = candidate.tags
  }

  /// Whether downloads of this kind may be stored at a location; `nil` is any location.
  package func belongs(to wanted: String?) -> Bool { wanted == nil || location == nil || location == wanted }
}

/// The place of a waiting download in the queue: the smallest key is leased first.
package struct WaitingKey: Comparable, Hashable, Sendable {
  package var rank: UInt128
  package var arrival: Int64
  package var generation: Int64

  package init(rank: UInt128, arrival: Int64, generation: Int64) {
    (self.rank, self.arrival, self.generation) = (rank, arrival, generation)
  }

  /// A key before every other key.
  package static let first = WaitingKey(rank: 0, arrival: .min, generation: 0)

  package static func < (left: Self, right: Self) -> Bool {
    (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
  }
}
