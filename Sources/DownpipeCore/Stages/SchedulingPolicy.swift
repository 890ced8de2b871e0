public import Foundation

/// Says who goes next: gives each waiting download a ``Rank``.
///
/// A policy only ranks; it never starts anything. Ranks are kept and indexed by the ledger, so that
/// ten million waiting downloads cost disk and not memory.
public protocol SchedulingPolicy: Stage {
  /// The rank of a download; the smallest rank goes first, and of equal ranks the one that arrived first. Pure: equal
  /// contexts give equal ranks.
  func rank(_ context: RankingContext) -> Rank
  /// Which ranks these are: another number where equal contexts no longer get the ranks that an earlier release of the
  /// policy gave them. A ledger with ranks of another version is ranked anew when it is opened.
  var version: Int { get }
}

extension SchedulingPolicy {
  /// 1.
  public var version: Int { 1 }

  /// Becomes the pipeline's policy; the last one written counts.
  public func contribute(to parts: inout PipelineParts) { parts.scheduling = self }
}

/// What a scheduling policy may know.
public struct RankingContext: Sendable, Hashable {
  /// Which download.
  public var id: DownloadID
  /// How much it matters.
  public var priority: Priority
  /// Why it is wanted.
  public var intent: Intent
  /// The order of arrival: grows with each download added, over restarts too.
  public var arrival: Int64
  /// When it was added.
  public var createdAt: Date
  /// The size it will have, where that is known.
  public var expectedSize: Int64?

  /// Makes a context.
  public init(
    id: DownloadID, priority: Priority = .normal, intent: Intent = .userInitiated, arrival: Int64,
    createdAt: Date = Date(timeIntervalSince1970: 0), expectedSize: Int64? = nil
  ) {
    self.id = id
    self.priority = priority
    self.intent = intent
    self.arrival = arrival
    self.createdAt = createdAt
    self.expectedSize = expectedSize
  }
}

/// A 128-bit key that sorts waiting downloads: the smallest goes first.
///
/// Ranks compose: each part is appended below the ones before it.
/// ```swift
/// Rank().descending(context.priority).ascending(context.arrival)
/// ```
public struct Rank: Sendable, Hashable, Comparable {
  /// The key.
  public private(set) var value: UInt128
  private var bitsUsed = 0

  /// A key without parts.
  public init() { value = 0 }

  /// A key from its 128 bits, as ledgers store them.
  public init(value: UInt128) {
    self.value = value
    bitsUsed = 128
  }

  /// Appends a number in `bits` bits; larger numbers are cut to the largest that fits.
  public func appending(_ number: UInt64, bits: Int) -> Rank {
    precondition(bits > 0 && bits <= 64 && bitsUsed + bits <= 128, "a rank has 128 bits")
    var copy = self
    let limit: UInt64 = bits == 64 ? .max : (1 << UInt64(bits)) - 1
    copy.bitsUsed += bits
    copy.value |= UInt128(min(number, limit)) << UInt128(128 - copy.bitsUsed)
    return copy
  }

  /// Appends a priority (16 bits), the highest first.
  public func descending(_ priority: Priority) -> Rank {
    appending(UInt64(Int32(Int16.max) - Int32(priority.rawValue)), bits: 16)
  }

  /// Appends a number that is not negative (64 bits), the smallest first.
  public func ascending(_ number: Int64) -> Rank { appending(UInt64(max(0, number)), bits: 64) }

  /// Whether two keys are the same.
  public static func == (left: Self, right: Self) -> Bool { left.value == right.value }
  /// Hashes the key.
  public func hash(into hasher: inout Hasher) { hasher.combine(value) }
  /// Orders by key.
  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}
