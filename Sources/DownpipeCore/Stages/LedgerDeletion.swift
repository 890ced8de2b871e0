internal import Foundation

/// What a removed download has left on disk: its partials, and its files if they are to be deleted with it.
///
/// A ledger keeps it from the removal of the record until it has been deleted, also over the end of the process.
@_spi(Ledger) public struct LedgerDeletion: Sendable, Hashable {
  /// The number under which the ledger keeps it; zero before.
  public var number: Int64 = 0
  /// The id of the download. It may have been added again since.
  public var id: DownloadID
  /// The generation of the download.
  public var generation: Int64 = 0
  /// The partials of the download: whether each is the second one.
  public var partials: [Bool] = []
  /// The files to delete.
  public var artifacts: [StoredArtifact] = []
  /// The ``Storage/location`` of the storage that deletes them.
  public var location: String?

  /// Nothing to delete of a download.
  public init(id: DownloadID) { self.id = id }

  /// What a record leaves.
  /// - Parameters:
  ///   - record: The record.
  ///   - artifacts: The files to delete.
  ///   - location: The location of the storage that deletes them.
  public init(_ record: DownloadRecord, _ artifacts: [StoredArtifact], at location: String?) {
    (id, generation, self.artifacts, self.location) = (record.id, record.generation, artifacts, location)
    partials = record.partialKeys.map(\.isSecond)
  }

  /// What a ledger stores of it, beside its number and location: the generation, a digit for each partial, the length of the id
  /// in bytes, the id, and the files as JSON, if there are any.
  public var content: String {
    get throws {
      let files = artifacts.isEmpty ? "" : String(decoding: try JSONEncoder().encode(artifacts), as: UTF8.self)
      let partials = partials.map { $0 ? "2" : "1" }.joined()
      return "\(generation) \(partials) \(id.rawValue.utf8.count) \(id.rawValue)\(files)"
    }
  }

  /// Whether what a ledger has stored could be read. Otherwise it is left to a later version.
  public private(set) var isReadable = true

  /// What a ledger has stored.
  public init(stored content: String, number: Int64, location: String?) {
    self.init(id: "")
    (self.number, self.location, isReadable) = (number, location, false)
    let parts = content.utf8.split(separator: UInt8(ascii: " "), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, let generation = Int64(Substring(parts[0])), let length = Int(Substring(parts[2])),
      length >= 0,
      let id = String(parts[3].prefix(length))
    else { return }
    let files = Data(parts[3].dropFirst(length))
    guard let artifacts = files.isEmpty ? [] : try? JSONDecoder().decode([StoredArtifact].self, from: files) else {
      return
    }
    (self.id, self.generation, self.artifacts) = (DownloadID(id), generation, artifacts)
    (partials, isReadable) = (parts[1].map { $0 == UInt8(ascii: "2") }, true)
  }

  /// Whether there is nothing to delete, so that nothing has to be kept.
  public var isEmpty: Bool { partials.isEmpty && artifacts.isEmpty }

  /// The keys of the partials to delete.
  var partialKeys: [PartialKey] {
    partials.map { PartialKey(id: id, generation: generation, isSecond: $0) }
  }
}

/// The result of a removal.
@_spi(Ledger) public struct LedgerRemoval: Sendable, Hashable {
  /// The number of removed records.
  public var count = 0
  /// The first and the last number under which the ledger keeps what they leave; `nil` if that is nothing. In between there
  /// may be numbers of others.
  public var deletions: ClosedRange<Int64>?
  /// Whether the removal had taken effect before it was made again.
  public private(set) var isGivenAgain = false

  /// Creates the result of a removal of nothing.
  public init() {}

  /// The result of a removal that had taken effect.
  init(again count: Int, _ deletions: ClosedRange<Int64>?) {
    (self.count, self.deletions, isGivenAgain) = (count, deletions, true)
  }

  /// Counts a removed record.
  /// - Parameter number: The number under which the ledger keeps what it leaves; `nil` if that is nothing.
  public mutating func note(_ number: Int64?) {
    count += 1
    guard let number else { return }
    deletions = min(number, deletions?.lowerBound ?? number)...max(number, deletions?.upperBound ?? number)
  }
}
