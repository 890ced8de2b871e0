@_spi(Ledger) import DownpipeCore
import Foundation

/// The stored form of a ``VersionLog``: members that say nothing are left out.
struct VersionText: Codable, Sendable {
  let log: VersionLog

  private enum CodingKeys: CodingKey { case isInSecond, hasOther, mayChange, isWanted, earlier }

  /// - Returns: `nil` for the log of a file with one version.
  init?(_ log: VersionLog) {
    if log == VersionLog() { return nil }
    self.log = log
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func flag(_ key: CodingKeys) throws -> Bool { try container.decodeIfPresent(Bool.self, forKey: key) ?? false }
    log = VersionLog(
      isInSecond: try flag(.isInSecond), hasOther: try flag(.hasOther),
      earlier: try container.decodeIfPresent(CheckpointText.self, forKey: .earlier)?.checkpoint,
      mayChange: try flag(.mayChange), isWanted: try flag(.isWanted))
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for (key, flag) in [
      (CodingKeys.isInSecond, log.isInSecond), (.hasOther, log.hasOther), (.mayChange, log.mayChange),
      (.isWanted, log.isWanted),
    ] where flag {
      try container.encode(true, forKey: key)
    }
    try container.encodeIfPresent(log.earlier.map(CheckpointText.init), forKey: .earlier)
  }
}

/// The stored form of a checkpoint beside the one in the columns of a record.
private struct CheckpointText: Codable {
  let checkpoint: Checkpoint

  private enum CodingKeys: CodingKey {
    case ranges, total, validator, resource, contentCoding, name, mediaType, digests, marks
  }

  init(_ checkpoint: Checkpoint) { self.checkpoint = checkpoint }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func text(_ key: CodingKeys) throws -> String? { try container.decodeIfPresent(String.self, forKey: key) }
    let ranges = try text(.ranges).map { ByteRangeSet(storedText: $0[...]) } ?? ByteRangeSet()
    let marks = try text(.marks).map(BlockMarkText.marks) ?? []
    guard let ranges, let marks else {
      throw DecodingError.dataCorruptedError(forKey: .ranges, in: container, debugDescription: "not ranges or marks")
    }
    checkpoint = Checkpoint(
      ranges: ranges, total: ByteCount(try container.decodeIfPresent(Int64.self, forKey: .total)),
      validator: try container.decodeIfPresent(Validator.self, forKey: .validator), resource: try text(.resource),
      contentCoding: try text(.contentCoding), name: try text(.name), mediaType: try text(.mediaType),
      digests: try container.decodeIfPresent([FileDigest].self, forKey: .digests) ?? [], marks: marks)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    if !checkpoint.ranges.isEmpty { try container.encode(checkpoint.ranges.storedText, forKey: .ranges) }
    try container.encodeIfPresent(checkpoint.total.bytes, forKey: .total)
    try container.encodeIfPresent(checkpoint.validator, forKey: .validator)
    try container.encodeIfPresent(checkpoint.resource, forKey: .resource)
    try container.encodeIfPresent(checkpoint.contentCoding, forKey: .contentCoding)
    try container.encodeIfPresent(checkpoint.name, forKey: .name)
    try container.encodeIfPresent(checkpoint.mediaType, forKey: .mediaType)
    if !checkpoint.digests.isEmpty { try container.encode(checkpoint.digests, forKey: .digests) }
    try container.encodeIfPresent(BlockMarkText.text(checkpoint.marks), forKey: .marks)
  }
}
