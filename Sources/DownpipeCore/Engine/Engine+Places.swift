internal import Synchronization

// Who counts among those that run, for the admission policies: from the claim until the work is over. The ledger hears
// of the end a moment later, and who comes next need not wait for that.
extension Engine {
  /// So many runs may wait for the ledger's word beside those that have a place: a ledger that does not answer must not
  /// gather any number of them.
  private static let mostWithoutPlace = 64

  /// The work of a run is over. The ledger may write that and the next claim down at once.
  nonisolated func freePlace(of run: Run) {
    freed.withLock { $0.append(run) }
    wake()
  }

  /// Gives the places of runs whose work is over to others.
  func takeFreedPlaces() {
    let runs = freed.withLock { runs in
      defer { runs.removeAll(keepingCapacity: true) }
      return runs
    }
    for run in runs where running.count - counts.total < Self.mostWithoutPlace { takePlace(from: run) }
  }

  /// Takes a run's place from it.
  /// - Returns: whether it had one.
  @discardableResult
  func takePlace(from run: Run) -> Bool {
    guard run.giveUpPlace() else { return false }
    counts.remove(run.candidate)
    return true
  }
}
