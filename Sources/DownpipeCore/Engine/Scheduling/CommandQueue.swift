/// The commands that have been called and have not ended, in the order of their calls.
///
/// A command takes its turns in the loop, and may have to wait for a run in between. Later commands for the same download
/// wait for its end, so that an earlier command never undoes what a later one has done.
struct CommandQueue: Sendable {
  /// A command that has not ended.
  struct Pending: Sendable {
    let number: Int
    /// The downloads that it concerns; `nil` for all.
    var ids: Set<DownloadID>?
    /// Completed when the command has ended, or concerns less than before: those that wait for it look again.
    var end = Completion()
    /// The run for whose end it waits; `nil` if it waits for none.
    var awaited: ObjectIdentifier?

    func concerns(_ id: DownloadID) -> Bool { ids?.contains(id) ?? true }
  }

  /// In the order of their numbers.
  private var pending: [Pending] = []
  private var last = 0

  /// The number of commands that have not ended.
  var count: Int { pending.count }

  /// The number of commands that have not ended and concern a download.
  func count(for id: DownloadID) -> Int { pending.count { $0.concerns(id) } }

  /// Adds a command that is called now, and returns its number.
  /// - Parameter ids: The downloads that it concerns; `nil` for all.
  mutating func begin(_ ids: Set<DownloadID>?) -> Int {
    last += 1
    pending.append(Pending(number: last, ids: ids))
    return last
  }

  /// Notes that a command concerns only these downloads from now on.
  mutating func narrow(_ number: Int, to ids: Set<DownloadID>) {
    guard let index = pending.firstIndex(where: { $0.number == number }) else { return }
    pending[index].ids = ids
    let end = pending[index].end
    pending[index].end = Completion()
    end.complete()
  }

  /// Notes that a command waits for the end of a run.
  mutating func wait(_ number: Int, for run: Run) {
    guard let index = pending.firstIndex(where: { $0.number == number }) else { return }
    pending[index].awaited = ObjectIdentifier(run)
  }

  /// Whether all earlier commands for a run's download only wait for its end, so that a later one may stop it at once.
  func permitStop(of run: Run, by number: Int) -> Bool {
    pending.allSatisfy { $0.number >= number || !$0.concerns(run.id) || $0.awaited == ObjectIdentifier(run) }
  }

  /// Ends a command: those that have waited for it take their turns. A second call has no effect.
  mutating func end(_ number: Int) {
    guard let index = pending.firstIndex(where: { $0.number == number }) else { return }
    pending.remove(at: index).end.complete()
  }

  /// The last one of the earlier commands that concern a download; `nil` if there is none.
  func last(for id: DownloadID, before number: Int) -> Pending? {
    pending.last { $0.number < number && $0.concerns(id) }
  }

  /// The last one of the earlier commands that concern all downloads, or one for which a condition is true.
  func last(before number: Int, where condition: (DownloadID) -> Bool) -> Pending? {
    pending.last { $0.number < number && $0.ids?.contains(where: condition) ?? true }
  }
}
