// Dependencies between downloads. Every ledger keeps them through these functions, so that the rules exist once.
extension DownloadRecord {
  /// Whether a lease may take the download at its due time: it waits, and for no other download.
  package var isQueued: Bool { phase == .waiting && waitsFor.isEmpty }

  /// Brings ``waitsFor`` up to date with the request.
  ///
  /// A dependency that has finished once stays met, also when the other download starts again.
  /// - Parameters:
  ///   - before: The dependencies of the request before its change; none for a new download.
  ///   - isFinished: Whether a download has finished.
  package mutating func follow(
    since before: Set<DownloadID>, _ isFinished: (DownloadID) throws -> Bool
  ) rethrows {
    guard request.after != before else { return }
    waitsFor.formIntersection(request.after)
    for id in request.after.subtracting(before) where try !isFinished(id) { waitsFor.insert(id) }
  }
}

/// The search for downloads that wait for each other.
///
/// Only unmet dependencies count. A change can complete a cycle only through a download to which it adds a dependency.
/// Unless another download waited for one of these before, a search among them is enough: a chain of any length can be
/// added in its order, in one step or many. Otherwise the search also visits the downloads above them, at most ``limit``.
package struct DependencyCycle {
  /// The largest number of downloads that a search visits besides those that have changed.
  package static let limit = 10_000
  /// The largest number of downloads that an error message names.
  private static let namesInMessage = 10

  private let changed: Set<DownloadID>
  private let visitsOthers: Bool
  private let waitsFor: (DownloadID) throws -> Set<DownloadID>
  /// The downloads that wait for each other in turn, from the start of the search to the present one.
  private var path: [(id: DownloadID, next: ArraySlice<DownloadID>)] = []
  private var places: [DownloadID: Int] = [:]
  /// The downloads through which there is no cycle.
  private var done: Set<DownloadID> = []
  private var others = 0

  /// Checks that no download waits for itself after a change.
  ///
  /// - Parameters:
  ///   - changed: The downloads that have got dependencies.
  ///   - visitsOthers: Whether another download waited for one of them before the change.
  ///   - waitsFor: The downloads that a download waits for; none if it does not exist.
  /// - Throws: ``DownloadError`` with `.invalidRequest` that names the cycle, or says that the search was ended.
  package static func check(
    _ changed: [DownloadID], visitsOthers: Bool, waitsFor: (DownloadID) throws -> Set<DownloadID>
  ) throws {
    try withoutActuallyEscaping(waitsFor) { waitsFor in
      var search = DependencyCycle(changed: Set(changed), visitsOthers: visitsOthers, waitsFor: waitsFor)
      for id in changed { try search.run(from: id) }
    }
  }

  private init(
    changed: Set<DownloadID>, visitsOthers: Bool, waitsFor: @escaping (DownloadID) throws -> Set<DownloadID>
  ) {
    self.changed = changed
    self.visitsOthers = visitsOthers
    self.waitsFor = waitsFor
  }

  private mutating func run(from start: DownloadID) throws {
    if !done.contains(start) { try enter(start) }
    while let last = path.indices.last {
      guard let id = path[last].next.popFirst() else {
        done.insert(path[last].id)
        places[path[last].id] = nil
        path.removeLast()
        continue
      }
      if let place = places[id] { throw error(path[place...].map(\.id)) }
      if !done.contains(id), visitsOthers || changed.contains(id) { try enter(id) }
    }
  }

  private mutating func enter(_ id: DownloadID) throws {
    if !changed.contains(id) {
      others += 1
      guard others <= Self.limit else { throw Self.tooMany(path.first?.id ?? id) }
    }
    places[id] = path.count
    // Sorted, so that the same cycle always gives the same message.
    path.append((id, try waitsFor(id).sorted()[...]))
  }

  // MARK: Errors

  /// Names a cycle, beginning with a download that has changed.
  private func error(_ cycle: [DownloadID]) -> DownloadError {
    let first = cycle.firstIndex(where: changed.contains) ?? 0
    let cycle = Array(cycle[first...] + cycle[..<first])
    var names = cycle.prefix(Self.namesInMessage).map { "“\($0)”" }
    if cycle.count > names.count { names.append("\(cycle.count - names.count) more in turn") }
    names.append("“\(cycle[0])”")
    let chain = names[0] + " waits for " + names.dropFirst().joined(separator: ", which waits for ")
    return DownloadError(.invalidRequest, "\(chain): leave out one of these dependencies")
  }

  private static func tooMany(_ id: DownloadID) -> DownloadError {
    DownloadError(
      .invalidRequest,
      "“\(id)” would wait for more than \(limit) downloads in turn: add a chain that long from its beginning")
  }
}
