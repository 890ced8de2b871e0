/// The commands that have been called and are not over, in the order of their calls.
///
/// A command decides when its turn comes, and may have to wait for runs in between. Later commands for the same download
/// wait for its end, so that an earlier command never undoes what a later one has done.
///
/// A command for one download is looked up by its download: ten thousand callers cost no more than one each.
struct CommandQueue: Sendable {
  /// A command that is not over.
  struct Pending: Sendable {
    let number: Int
    /// The downloads that it concerns; `nil` for all.
    fileprivate(set) var ids: Set<DownloadID>?
    /// What it decides when its turn comes; `nil` while it decides.
    fileprivate var decision: AnyDecision?
    /// The runs that it waits for.
    fileprivate var awaited: [Run] = []
    fileprivate var comesBeforeLeases = false
    /// The earlier command that it waits for.
    fileprivate var blocker: Int?
    fileprivate var hasHadATurn = false
    /// Whether it has begun what has to be completed: it has stopped a run, or was on an errand.
    fileprivate var hasStopped = false
    /// Whether it adds downloads.
    fileprivate var isAddition = false
    fileprivate var isCancelled = false
    /// Whether its caller does not wait any longer.
    fileprivate var isAnswered = false
    fileprivate var isOnErrand = false
    fileprivate let fail: @Sendable (any Error) -> Void

    fileprivate func concerns(_ id: DownloadID) -> Bool { ids?.contains(id) ?? true }
  }

  /// What waits for its turn.
  enum Entry: Sendable {
    case command(Int)
    case addition(Addition)
  }

  /// By number.
  private var pending: [Int: Pending] = [:]
  /// The numbers of the commands that concern one download, in ascending order.
  private var numbers: [DownloadID: [Int]] = [:]
  /// The numbers of the commands that concern many or all, in ascending order. They are few.
  private var wide: [Int] = []
  /// The numbers of the commands that wait for runs.
  private var waiting: Set<Int> = []
  /// The numbers of the commands that wait for an earlier one, by its number.
  private var blocked: [Int: Set<Int>] = [:]
  /// What can be done in the next turn, in the order of the calls.
  private(set) var ready: [Entry] = []

  /// The number of commands that are not over.
  var count: Int { pending.count }

  /// Adds a command that was called.
  /// - Parameter stopped: The run that the call has stopped.
  mutating func begin(_ call: Call, stopped: Run? = nil) {
    let number = call.number
    pending[number] = Pending(
      number: number, ids: call.ids, decision: call.decision(stopped), hasStopped: stopped != nil,
      isAddition: call.isAddition, fail: call.fail)
    func insert(in list: inout [Int]) { list.insert(number, at: Self.count(of: list, below: number)) }
    if let id = call.ids?.first, call.ids?.count == 1 {
      insert(in: &numbers[id, default: []])
    } else if call.ids?.isEmpty != true {
      insert(in: &wide)
    }
    ready.append(.command(number))
  }

  #if SABOTAGE
    /// Notes a command again, which then never ends.
    mutating func keep(_ call: Call) { pending[-call.number] = Pending(number: -call.number, ids: []) { _ in } }

    /// Begins the turn of a command without a look at earlier ones.
    mutating func takeTurnLate(of number: Int) -> Turn? {
      guard pending[number]?.decision != nil else { return nil }
      return takeTurn(number)
    }
  #endif

  mutating func append(_ entry: Entry) { ready.append(entry) }

  /// Removes and returns what can be done in this turn.
  mutating func takeReady() -> [Entry] {
    defer { ready = [] }
    return ready
  }

  // MARK: Turns

  /// Whether an entry adds downloads.
  func adds(_ entry: Entry) -> Bool {
    switch entry {
    case .addition: true
    case .command(let number): pending[number]?.isAddition ?? true
    }
  }

  /// The turn of a command.
  struct Turn: Sendable {
    let decision: AnyDecision
    /// Whether it has done something that has to be completed.
    let hasBegun: Bool
  }

  /// Begins the turn of a command when its turn has come.
  ///
  /// - Parameter hasRun: Whether a download has a run: a command for all leaves these, in its first turn, to those that were
  ///   called before.
  /// - Returns: `nil` if an earlier command comes first, or the caller was cancelled.
  mutating func takeTurn(of number: Int, hasRun: (DownloadID) -> Bool) -> Turn? {
    guard let command = pending[number], command.decision != nil else { return nil }
    if let earlier = earlier(than: command, hasRun: hasRun) {
      if command.isCancelled, !giveUp(number) { return nil }
      pending[number]?.blocker = earlier
      blocked[earlier, default: []].insert(number)
      return nil
    }
    return takeTurn(number)
  }

  private mutating func takeTurn(_ number: Int) -> Turn? {
    guard let command = pending[number], let decision = command.decision else { return nil }
    pending[number]?.decision = nil
    pending[number]?.blocker = nil
    pending[number]?.hasHadATurn = true
    return Turn(decision: decision, hasBegun: command.hasHadATurn || command.hasStopped)
  }

  /// Whether a command needs to know which downloads this owner holds.
  func concernsDownloads(_ number: Int) -> Bool {
    pending[number].map { $0.ids?.isEmpty != true && !$0.isAddition } ?? false
  }

  private func earlier(than command: Pending, hasRun: (DownloadID) -> Bool) -> Int? {
    guard let ids = command.ids else {
      // It does not wait for disks, which may not answer.
      let held = heldByErrands(before: command.number)
      return last(before: command.number) { !hasRun($0) && !held.contains($1.number) }
    }
    // It concerns none.
    if ids.isEmpty { return nil }
    return ids.count == 1
      ? ids.first.flatMap { last(for: $0, before: command.number) }
      : last(before: command.number) { id, _ in ids.contains(id) }
  }

  /// Lets a command wait for the ends of runs; then its turn comes again.
  /// - Returns: Whether it need not wait.
  mutating func wait(_ number: Int, for runs: [Run], comesBeforeLeases: Bool, then decision: AnyDecision) -> Bool {
    guard var command = pending[number] else { return false }
    (command.decision, command.awaited) = (decision, runs)
    command.comesBeforeLeases = comesBeforeLeases
    pending[number] = command
    if runs.allSatisfy(\.isOver) { return true }
    if !command.isCancelled || giveUp(number) { waiting.insert(number) }
    return false
  }

  /// Lets a command wait for the end of an errand.
  /// - Parameter isLast: Whether it is over then: those that have waited for it take their turns.
  mutating func waitForErrand(_ number: Int, isLast: Bool) {
    pending[number]?.isOnErrand = true
    pending[number]?.hasStopped = true
    if isLast, let command = pending[number] {
      unlist(command)
      narrow(number, to: [])
    }
    if pending[number]?.isCancelled == true { _ = giveUp(number) }
  }

  /// Lets a command decide after its errand.
  mutating func resume(_ number: Int, _ decision: AnyDecision) {
    guard pending[number] != nil else { return }
    pending[number]?.decision = decision
    pending[number]?.isOnErrand = false
    ready.append(.command(number))
  }

  /// Lets the commands go on whose runs have ended.
  /// - Returns: Whether there are any.
  @discardableResult
  mutating func goOn() -> Bool {
    guard !waiting.isEmpty else { return false }
    let before = ready.count
    for number in waiting.sorted() where pending[number]?.awaited.allSatisfy(\.isOver) == true {
      waiting.remove(number)
      ready.append(.command(number))
    }
    return ready.count > before
  }

  /// Notes that a command for all concerns only these downloads from now on.
  mutating func narrow(_ number: Int, to ids: Set<DownloadID>) {
    pending[number]?.ids = ids
    unblock(number)
  }

  /// Ends a command: those that have waited for it take their turns.
  /// - Returns: Whether its caller waits for the answer.
  mutating func end(_ number: Int) -> Bool {
    guard let ended = pending.removeValue(forKey: number) else { return false }
    waiting.remove(number)
    unlist(ended)
    unblock(number)
    return !ended.isAnswered
  }

  /// Removes a command from the lists of those that concern downloads.
  private mutating func unlist(_ command: Pending) {
    func remove(from list: inout [Int]) {
      let index = Self.count(of: list, below: command.number)
      if index < list.count, list[index] == command.number { list.remove(at: index) }
    }
    remove(from: &wide)
    if let id = command.ids?.first, numbers[id] != nil {
      remove(from: &numbers[id, default: []])
      if numbers[id]?.isEmpty == true { numbers[id] = nil }
    }
  }

  private mutating func unblock(_ number: Int) {
    for later in blocked.removeValue(forKey: number)?.sorted() ?? [] {
      pending[later]?.blocker = nil
      ready.append(.command(later))
    }
  }

  // MARK: Ends

  /// Notes that a command has stopped a run.
  mutating func noteStop(by number: Int) { pending[number]?.hasStopped = true }

  /// Ends the wait of a caller that was cancelled. What it has begun may still be completed.
  mutating func cancel(_ number: Int) {
    pending[number]?.isCancelled = true
    guard let command = pending[number] else { return }
    if waiting.contains(number) || command.blocker != nil || command.isOnErrand { _ = giveUp(number) }
  }

  /// Answers a caller that was cancelled, and ends its command, unless that has stopped a run. Then it keeps its place until
  /// it is over: what was called later would not know why the run ends.
  /// - Returns: Whether it keeps its place.
  private mutating func giveUp(_ number: Int) -> Bool {
    guard let command = pending[number], command.hasStopped else {
      fail(number, CancellationError())
      return false
    }
    pending[number]?.isAnswered = true
    if !command.isAnswered { command.fail(CancellationError()) }
    return true
  }

  /// Ends a command with an error.
  mutating func fail(_ number: Int, _ error: any Error) {
    let command = pending[number]
    if let blocker = command?.blocker { blocked[blocker]?.remove(number) }
    if end(number) { command?.fail(error) }
  }

  /// Refuses everything that is not over.
  mutating func refuseAll() {
    for (_, command) in pending.sorted(by: { $0.key < $1.key }) where !command.isAnswered {
      command.fail(DownloadError.shutDown)
    }
    for case .addition(let addition) in ready { addition.answer(.failure(DownloadError.shutDown)) }
    self = CommandQueue()
  }

  // MARK: Earlier commands

  /// The commands that concern a download, in no order.
  private func all(for id: DownloadID) -> some Sequence<Pending> {
    [numbers[id] ?? [], wide].joined().lazy.compactMap { pending[$0] }.filter { $0.concerns(id) }
  }

  /// Whether a command concerns one of these downloads.
  func concern(_ ids: [DownloadID]) -> Bool {
    !pending.isEmpty && ids.contains { id in all(for: id).contains { _ in true } }
  }

  /// Whether all earlier commands for a run's download only wait for its end, so that a later one may stop it at once.
  func permitStop(of run: Run, by number: Int) -> Bool {
    all(for: run.id).allSatisfy { command in
      command.number >= number || (waiting.contains(command.number) && command.awaited.contains { $0 === run })
    }
  }

  /// Whether a command takes its next turn before the next lease because the run has ended that it waited for, or ends
  /// now.
  /// - Parameter ending: The runs that end now.
  func isTurnDue(after ending: [Exchange.UnsavedRun]) -> Bool {
    waiting.contains { number in
      guard let command = pending[number], command.comesBeforeLeases else { return false }
      return command.awaited.allSatisfy { run in run.isOver || ending.contains { $0.run === run } }
    }
      || ready.contains { entry in
        if case .command(let number) = entry { pending[number]?.comesBeforeLeases == true } else { false }
      }
  }

  /// Those of the runs that earlier commands have not finished with.
  func contested(_ runs: [Run], by number: Int) -> Set<DownloadID> {
    Set(runs.map(\.id).filter { last(for: $0, before: number) != nil })
  }

  /// The last one of the earlier commands that concern a download; `nil` if there is none.
  private func last(for id: DownloadID, before number: Int) -> Int? {
    let own = numbers[id].map { $0.prefix(Self.count(of: $0, below: number)) } ?? []
    return [own.last, wide.last { $0 < number && pending[$0]?.concerns(id) == true }].lazy.compactMap(\.self).max()
  }

  /// How many numbers of an ascending list are smaller than one.
  private static func count(of list: [Int], below number: Int) -> Int {
    var range = 0..<list.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = list[middle] < number ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }

  /// The commands that are on errands, or wait for one that is.
  private func heldByErrands(before number: Int) -> Set<Int> {
    guard pending.values.contains(where: \.isOnErrand) else { return [] }
    // Each waits for an earlier one.
    return pending.values.filter { $0.number < number }.sorted { $0.number < $1.number }.reduce(into: []) {
      held, command in
      if command.isOnErrand || command.blocker.map(held.contains) == true { held.insert(command.number) }
    }
  }

  /// The last one of the earlier commands that concern all downloads, or one for which a condition is true.
  private func last(before number: Int, where condition: (DownloadID, Pending) -> Bool) -> Int? {
    pending.values.filter { earlier in
      earlier.number < number && earlier.ids?.contains { condition($0, earlier) } ?? true
    }.map(\.number).max()
  }
}
