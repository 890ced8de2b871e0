internal import Foundation
internal import Synchronization

/// The places of one download, in the order in which they are asked: the URL of its request, then its mirrors. It knows
/// which are excluded and which were asked, and names the next one.
///
/// A snapshot: ``Run/places`` is made from the request, which may change, and from what the run has learnt.
struct Places: Sendable {
  /// What a run learns of the places.
  struct Experience: Sendable {
    /// The index of the place in use.
    var current = 0
    /// The places that have sent the pieces that were found wrong last.
    var senders: [URL] = []
    /// The places that were asked for wrong pieces again.
    var askedForPieces: [URL] = []
    /// Those of them that send the file as a whole only.
    var wholeOnly: [URL] = []
    /// The places whose ranges are not asked for any more in this run, because one was refused or contradicts what is known.
    var distrusted: [URL] = []
    /// Whether the file was fetched over several connections, by ranges, in this run.
    var usedSegments = false
  }

  let urls: [URL]
  /// The places that have sent wrong bytes.
  let excluded: [URL]
  private let experience: Experience

  init(_ request: DownloadRequest, excluded: [URL], _ experience: Experience) {
    var urls = [request.url]
    urls.append(contentsOf: request.mirrors)
    self.urls = urls
    self.excluded = excluded
    self.experience = experience
  }

  // MARK: A whole file

  /// The index of the place in use.
  var current: Int { min(experience.current, urls.count - 1) }
  var currentURL: URL { urls[current] }

  /// The first place from an index on that has not sent wrong bytes; `nil` if there is none.
  private func first(from index: Int) -> Int? { urls.indices.dropFirst(index).first { !excluded.contains(urls[$0]) } }

  /// The place with which a transfer begins: the one in use, unless it has sent wrong bytes and another one has not.
  var first: Int { first(from: current) ?? first(from: 0) ?? current }

  /// The place to ask when all are asked again: the first one that has not sent wrong bytes.
  var firstOfAll: Int { first(from: 0) ?? 0 }

  /// The place to ask after a failure of the one at an index; `nil` if there is none left.
  func next(after index: Int) -> Int? { first(from: index + 1) }

  /// The place to ask in the stead of one that has sent wrong bytes, also an earlier one.
  func next(insteadOf wrong: URL) -> Int {
    urls.firstIndex(of: wrong).flatMap(next(after:)) ?? firstOfAll
  }

  /// Whether there is a place beside this one that has not sent wrong bytes.
  func hasOther(than url: URL) -> Bool { urls.contains { $0 != url && !excluded.contains($0) } }

  // MARK: Wrong pieces

  /// The place from which wrong pieces are to be fetched next, at last from one that has sent them; `nil` if all were
  /// asked.
  var nextForPieces: Int? {
    let left = urls.indices.filter { !excluded.contains(urls[$0]) && !experience.askedForPieces.contains(urls[$0]) }
    return left.first { !experience.senders.contains(urls[$0]) } ?? left.first
  }

  /// A place that was asked for pieces and sends the file as a whole only.
  var nextForWhole: Int? { experience.wholeOnly.last.flatMap { urls.firstIndex(of: $0) } }

  // MARK: Segments

  /// The places that may bring parts of a file beside the one in use: the mirrors behind it, and the duplicates that its
  /// server has named.
  func beside(duplicates: [URL]) -> [(url: URL, isNamedByServer: Bool)] {
    (urls.dropFirst(current + 1).map { ($0, false) } + duplicates.map { ($0, true) })
      .filter { !excluded.contains($0.url) }
  }
}

extension Run {
  var places: Places {
    let experience = findings.withLock { $0.places }
    return read { Places($0.request, excluded: context.placeMemory.excluded(of: $0), experience) }
  }

  /// Uses another place from now on.
  func use(_ place: Int) { findings.withLock { $0.places.current = place } }

  /// Whether the run goes on with another place after a failure of the one at an index: the retry policy would not try the
  /// same one again.
  func isFinal(_ judged: JudgedFailure, at index: Int) -> Bool {
    judged.isFinal(
      hasBytes: read { !$0.partialRanges.isEmpty },
      // Only the request's URL is refreshed, not its mirrors.
      canRefresh: index == 0 && pipeline.refresher != nil)
  }
}
