/// The commands that have been called and have not ended, in the order of their calls.
///
/// A command takes its turns in the engine, and may have to wait for a run in between. Later commands for the same download
/// wait for its end, so that an earlier command never undoes what a later one has done.
///
/// A command for one download is looked up by its download: ten thousand callers cost no more than one each.
struct CommandQueue: Sendable {
  /// A command that has not ended.
  struct Pending: Sendable {
    let number: Int
    /// The downloads that it concerns; `nil` for all.
    fileprivate var ids: Set<DownloadID>?
    /// Completed when the command has ended, or concerns less than before: those that wait for it look again.
    fileprivate(set) var end = Completion()

    fileprivate func concerns(_ id: DownloadID) -> Bool { ids?.contains(id) ?? true }
  }

  /// By number.
  private var pending: [Int: Pending] = [:]
  /// The numbers of the commands that concern one download, in ascending order.
  private var numbers: [DownloadID: [Int]] = [:]
  /// The numbers of the commands that concern many or all, in ascending order. They are few.
  private var wide: [Int] = []
  /// The runs for whose ends commands wait, by the numbers of the commands. They are no more than there are runs.
  private var awaited: [Int: (run: Run, comesBeforeLeases: Bool)] = [:]
  private var last = 0

  /// The number of commands that have not ended.
  var count: Int { pending.count }

  /// Adds a command that is called now, and returns its number.
  /// - Parameter ids: The downloads that it concerns; `nil` for all.
  mutating func begin(_ ids: Set<DownloadID>?) -> Int {
    last += 1
    pending[last] = Pending(number: last, ids: ids)
    if let id = ids?.first, ids?.count == 1 { numbers[id, default: []].append(last) } else { wide.append(last) }
    return last
  }

  /// Notes that a command for all concerns only these downloads from now on.
  mutating func narrow(_ number: Int, to ids: Set<DownloadID>) {
    guard let end = pending[number]?.end else { return }
    pending[number]?.ids = ids
    pending[number]?.end = Completion()
    end.complete()
  }

  /// Notes that a command waits for the end of a run, and then takes another turn.
  /// - Parameter comesBeforeLeases: Whether that turn has to come before the next lease, because the download may be leased.
  mutating func wait(_ number: Int, for run: Run, comesBeforeLeases: Bool) {
    if pending[number] != nil { awaited[number] = (run, comesBeforeLeases) }
  }

  /// Ends a command: those that have waited for it take their turns. A second call has no effect.
  /// - Returns: The run for whose end the command has waited; `nil` if it has not, or has ended before.
  @discardableResult
  mutating func end(_ number: Int) -> Run? {
    guard let ended = pending.removeValue(forKey: number) else { return nil }
    wide.removeAll { $0 == number }
    if let id = ended.ids?.first, let index = numbers[id]?.firstIndex(of: number) {
      numbers[id]?.remove(at: index)
      if numbers[id]?.isEmpty == true { numbers[id] = nil }
    }
    ended.end.complete()
    return awaited.removeValue(forKey: number)?.run
  }

  /// The commands that concern a download, in no order.
  private func all(for id: DownloadID) -> some Sequence<Pending> {
    [numbers[id] ?? [], wide].joined().lazy.compactMap { pending[$0] }.filter { $0.concerns(id) }
  }

  /// Those of the downloads that a command concerns which has not ended.
  func concerned(of ids: [DownloadID]) -> Set<DownloadID> {
    guard !pending.isEmpty else { return [] }
    return Set(ids.filter { id in all(for: id).contains { _ in true } })
  }

  /// The number of commands that have not ended and concern a download.
  func count(for id: DownloadID) -> Int { all(for: id).reduce(0) { count, _ in count + 1 } }

  /// Whether all earlier commands for a run's download only wait for its end, so that a later one may stop it at once.
  func permitStop(of run: Run, by number: Int) -> Bool {
    all(for: run.id).allSatisfy { $0.number >= number || awaited[$0.number]?.run === run }
  }

  /// Whether a command takes its next turn before the next lease because the run has ended that it waited for, or ends
  /// now.
  /// - Parameter ending: The runs that end now.
  func isTurnDue(after ending: [Exchange.UnsavedRun]) -> Bool {
    awaited.values.contains { run, comesBeforeLeases in
      comesBeforeLeases && (run.isOver || ending.contains { $0.run === run })
    }
  }

  /// The last one of the earlier commands that concern a download; `nil` if there is none.
  func last(for id: DownloadID, before number: Int) -> Pending? {
    all(for: id).filter { $0.number < number }.max { $0.number < $1.number }
  }

  /// The last one of the earlier commands that concern all downloads, or one for which a condition is true.
  func last(before number: Int, where condition: (DownloadID) -> Bool) -> Pending? {
    pending.values.filter { $0.number < number && $0.ids?.contains(where: condition) ?? true }
      .max { $0.number < $1.number }
  }
}
