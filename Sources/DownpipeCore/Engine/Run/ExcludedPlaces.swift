internal import Foundation
internal import Synchronization

/// The places that have sent wrong bytes, for each life of a download. They are not asked again while another place is
/// left.
///
/// In memory: after a restart of the process a wrong place is asked once more. Bounded: when it is full, the places of
/// any other download are forgotten.
final class ExcludedPlaces: Sendable {
  private static let capacity = 10_000
  private let places = Mutex<[PartialKey: [URL]]>([:])

  /// The excluded places of a download, in the order in which they were excluded.
  func places(of key: PartialKey) -> [URL] { places.withLock { $0.isEmpty ? [] : $0[key] ?? [] } }

  func insert(_ place: URL, of key: PartialKey) {
    places.withLock { places in
      if places.count >= Self.capacity, places[key] == nil { places.removeValue(forKey: places.first?.key ?? key) }
      if places[key]?.contains(place) != true { places[key, default: []].append(place) }
    }
  }

  func forget(_ key: PartialKey) {
    places.withLock { places in
      if !places.isEmpty { places[key] = nil }
    }
  }
}
