internal import Foundation
internal import Synchronization

/// How far the ranges of each URL are trusted, for the life of the downloader.
///
/// Bounded: URLs that do not fit are trusted fully, and lose that trust again with each use.
final class RangeMemory: Sendable {
  private static let capacity = 10_000
  private let levels = Mutex<[String: RangeTrust]>([:])

  func level(of url: URL) -> RangeTrust {
    levels.withLock { $0.isEmpty ? .full : $0[url.resourceKey, default: .full] }
  }

  func lower(_ url: URL, to level: RangeTrust) {
    // The key leaves out the query, which often holds a signature that changes while the server stays the same.
    let key = url.resourceKey
    levels.withLock { levels in
      guard level < levels[key, default: .full], levels[key] != nil || levels.count < Self.capacity else { return }
      levels[key] = level
    }
  }
}

extension RangeTrust {
  /// The lower trust after a reply was rejected with `code`; `nil` if the code does not concern ranges, or if there is
  /// no lower trust.
  static func left(after code: DownloadError.Code, of trust: RangeTrust) -> RangeTrust? {
    switch code {
    case .unproven: trust == .full ? .overlap : trust == .overlap ? RangeTrust.none : nil
    case .wrongRange, .wrongRangeEnd, .unreadableRange, .multipartRange, .wrongContentCoding, .rangeNotSatisfiable:
      trust > .none ? RangeTrust.none : nil
    case .contentChanged, .sizeChanged, .rangeRefused: trust > .none ? RangeTrust.none : nil
    default: nil
    }
  }

  /// Whether a code says something about the server's ranges for good, and not only about the file as it is now.
  static func isAboutTheServer(_ code: DownloadError.Code) -> Bool {
    code != .contentChanged && code != .sizeChanged && code != .rangeRefused
  }
}
