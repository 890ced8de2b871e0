internal import Foundation
internal import Synchronization

/// How far the ranges of each URL are believed in this run; forgotten with it. Bounded: what does not fit in any more
/// is believed in full, and finds out again.
final class RangeMemory: Sendable {
  private static let capacity = 10_000
  private let levels = Mutex<[String: RangeTrust]>([:])

  /// How far a URL's ranges are believed.
  func level(of url: URL) -> RangeTrust {
    levels.withLock { $0.isEmpty ? .full : $0[url.resourceKey, default: .full] }
  }

  /// Believes a URL's ranges less.
  func lower(_ url: URL, to level: RangeTrust) {
    // A query often holds a signature, which changes while the server stays the same.
    let key = url.resourceKey
    levels.withLock { levels in
      guard level < levels[key, default: .full], levels[key] != nil || levels.count < Self.capacity else { return }
      levels[key] = level
    }
  }
}

extension RangeTrust {
  /// How far ranges are still to be believed after an answer that was refused with a code; `nil` when the code has
  /// nothing to do with that, or nothing is left to believe less.
  static func left(after code: DownloadError.Code, of trust: RangeTrust) -> RangeTrust? {
    switch code {
    case .unproven: trust == .full ? .overlap : trust == .overlap ? RangeTrust.none : nil
    case .wrongRange, .wrongRangeEnd, .unreadableRange, .multipartRange, .wrongContentCoding, .rangeNotSatisfiable:
      trust > .none ? RangeTrust.none : nil
    default: nil
    }
  }
}
