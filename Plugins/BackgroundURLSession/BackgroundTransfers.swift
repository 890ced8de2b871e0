import DownpipeCore

/// Matches background tasks, finished files and openings, and decides when the app's completion handlers are called: a
/// value that takes events and returns effects. It carries out nothing itself.
///
/// - A file or task is delivered only to an opening with an equal ``TransferTag``. An opening replaces earlier requests
///   of its download: unused tasks and files with the same id and another tag are cancelled and deleted.
/// - The task of an abandoned opening (a pause, a removal) is cancelled and never delivered, even if it succeeds.
/// - Failures and refusals (404, 503 …) are delivered to the waiting opening. Without one they are dropped, and the
///   next opening sends a new request.
struct BackgroundTransfers: Sendable {
  private struct Running {
    let tag: TransferTag
    var opening: Int?
    /// Cancelled, or its file was reported: only `completed` follows.
    var isOver = false
    var answer: FinishedAnswer?
  }

  private struct Kept {
    let tag: TransferTag
    let answer: FinishedAnswer
    var isOut = false
  }

  private var tasks: [Int: Running] = [:]
  private var files: [String: Kept]
  /// The waiting openings, with a task or before the tasks are listed.
  private var openings: [Int: TransferTag] = [:]
  private var isAttached = false
  private var isListed = false
  private var failure: DownloadError?
  /// Tasks that ended before they were listed: the list may still contain them.
  private var endedEarly: Set<Int> = []

  /// Handlers that wait for the system, and those that wait for the downloads.
  private var registered: [Int] = []
  private var ready: [Int] = []
  private var wasDeliveredEarly = false
  private var untaken: Set<String> = []
  private var round = 0
  private var isClockRunning = false

  /// Starts with the files in the inbox.
  init(files: [InboxEntry] = []) {
    self.files = Dictionary(
      files.map { ($0.name, Kept(tag: $0.tag, answer: $0.answer)) }, uniquingKeysWith: { first, _ in first })
  }

  /// Processes an event and returns its effects.
  mutating func handle(_ event: Event) -> [Effect] {
    var effects: [Effect]
    switch event {
    case .attached:
      isAttached = true
      effects = []
    case .detached: effects = detach()
    case .listed(let list): effects = add(list)
    case .open(let opening, let tag): effects = open(opening, tag)
    case .abandon(let opening): effects = abandon(opening)
    case .started(let opening, let task): effects = noteStart(of: task, for: opening)
    case .finished(let task, let answer, let temporary): effects = finish(task, answer, temporary)
    case .kept(let task, let entry): effects = noteFile(entry, of: task)
    case .notKept(let task, let error): effects = failWaiter(of: task, error)
    case .completed(let task, let error): effects = complete(task, error)
    case .released(let entry, let isGone): effects = release(entry, isGone: isGone)
    case .eventsDelivered:
      if registered.isEmpty { wasDeliveredEarly = true }
      ready += registered
      registered = []
      effects = []
    case .handlerRegistered(let handler):
      // The system may report its end before the app registers the handler.
      if wasDeliveredEarly { ready.append(handler) } else { registered.append(handler) }
      wasDeliveredEarly = false
      effects = []
    case .patienceEnded(let round):
      if round == self.round, isClockRunning { untaken = [] }
      effects = []
    case .invalidated(let error): effects = invalidate(error)
    }
    // The handlers come after all other effects.
    return effects + callHandlers()
  }

  // MARK: Openings

  private mutating func open(_ opening: Int, _ tag: TransferTag) -> [Effect] {
    if let failure { return [.deliver(opening, .failure(failure))] }
    guard isAttached else { return [.deliver(opening, .failure(DownloadError(.shutDown, "the source was stopped")))] }
    let earlier = openings.keys.sorted().first { openings[$0] == tag }
    openings[opening] = tag
    guard let earlier else {
      // A task for it may be running already, which the list of tasks will show.
      return isListed ? place(opening, tag) : []
    }
    openings[earlier] = nil
    for task in tasks.keys where tasks[task]?.opening == earlier { tasks[task]?.opening = opening }
    return [.deliver(earlier, .failure(DownloadError(.cancelled, "the same bytes were requested again")))]
  }

  /// Assigns a file or task to an opening, or starts a task.
  private mutating func place(_ opening: Int, _ tag: TransferTag) -> [Effect] {
    var effects: [Effect] = []
    let file = files.keys.sorted().first { files[$0]?.tag == tag && files[$0]?.isOut == false }
    for (entry, other) in files.sorted(by: { $0.key < $1.key })
    where other.tag.id == tag.id && !other.isOut && entry != file {
      files[entry] = nil
      untaken.remove(entry)
      effects.append(.remove(entry: entry))
    }
    let task =
      file == nil ? tasks.keys.sorted().first { tasks[$0]?.tag == tag && tasks[$0]?.isOver == false } : nil
    for (number, other) in tasks.sorted(by: { $0.key < $1.key })
    where other.tag.id == tag.id && other.opening == nil && !other.isOver && number != task {
      effects += cancel(number)
    }
    if let file, let kept = files[file] {
      files[file]?.isOut = true
      openings[opening] = nil
      effects.append(.deliver(opening, .file(entry: file, tag, kept.answer)))
    } else if let task {
      tasks[task]?.opening = opening
      effects.append(.resume(task: task))
    } else {
      effects.append(.start(opening, tag))
    }
    return effects
  }

  private mutating func abandon(_ opening: Int) -> [Effect] {
    guard openings.removeValue(forKey: opening) != nil else { return [] }
    return tasks.keys.sorted().filter { tasks[$0]?.opening == opening }.flatMap { cancel($0) }
  }

  private mutating func cancel(_ task: Int) -> [Effect] {
    tasks[task]?.opening = nil
    tasks[task]?.isOver = true
    return [.cancel(task: task)]
  }

  // MARK: Tasks

  private mutating func add(_ list: [TaskReference]) -> [Effect] {
    isListed = true
    var effects: [Effect] = []
    for task in list where tasks[task.number] == nil && !endedEarly.contains(task.number) {
      if let tag = TransferTag(description: task.description) {
        tasks[task.number] = Running(tag: tag)
      } else {
        effects.append(.cancel(task: task.number))
      }
    }
    endedEarly = []
    for opening in openings.keys.sorted() {
      if let tag = openings[opening] { effects += place(opening, tag) }
    }
    return effects
  }

  private mutating func noteStart(of task: Int, for opening: Int) -> [Effect] {
    guard let tag = openings[opening] else { return [.cancel(task: task)] }
    tasks[task] = Running(tag: tag, opening: opening)
    return []
  }

  private mutating func finish(_ task: TaskReference, _ answer: FinishedAnswer, _ temporary: String) -> [Effect] {
    if tasks[task.number] == nil, let tag = TransferTag(description: task.description) {
      // It ended before it was listed.
      tasks[task.number] = Running(tag: tag)
    }
    guard let running = tasks[task.number], !running.isOver else { return [] }
    tasks[task.number]?.isOver = true
    guard answer.bringsBytes else {
      guard let opening = running.opening else { return [] }
      tasks[task.number]?.opening = nil
      openings[opening] = nil
      return [.deliver(opening, .refusal(answer, running.tag))]
    }
    guard isWanted(running.tag) else { return [] }
    tasks[task.number]?.answer = answer
    return [.keep(task: task.number, temporary: temporary, running.tag, answer)]
  }

  /// Whether no opening of the same download waits for other bytes.
  private func isWanted(_ tag: TransferTag) -> Bool {
    let wanted = openings.values.filter { $0.id == tag.id }
    return wanted.isEmpty || wanted.contains(tag)
  }

  private mutating func noteFile(_ entry: String, of task: Int) -> [Effect] {
    guard let running = tasks[task], let answer = running.answer else { return [.remove(entry: entry)] }
    tasks[task]?.opening = nil
    files[entry] = Kept(tag: running.tag, answer: answer)
    if isAttached { untaken.insert(entry) }
    guard let opening = running.opening ?? openings.keys.sorted().first(where: { openings[$0] == running.tag }) else {
      return []
    }
    openings[opening] = nil
    files[entry]?.isOut = true
    var effects: [Effect] = [.deliver(opening, .file(entry: entry, running.tag, answer))]
    // Another task that was started for it is not needed any more.
    for other in tasks.keys.sorted() where other != task && tasks[other]?.opening == opening {
      effects += cancel(other)
    }
    return effects
  }

  private mutating func complete(_ task: Int, _ error: DownloadError?) -> [Effect] {
    if !isListed { endedEarly.insert(task) }
    var error = error ?? DownloadError(.invalidResponse, "the transfer ended without an HTTP answer")
    if error.code == .cancelled {
      // The system cancelled it: an opening that is cancelled does not wait for its task.
      error = DownloadError(.network, "the system cancelled the transfer: \(error.message)")
    }
    let effects = failWaiter(of: task, error)
    tasks[task] = nil
    return effects
  }

  private mutating func failWaiter(of task: Int, _ error: DownloadError) -> [Effect] {
    guard let opening = tasks[task]?.opening else { return [] }
    tasks[task]?.opening = nil
    openings[opening] = nil
    return [.deliver(opening, .failure(error))]
  }

  private mutating func release(_ entry: String, isGone: Bool) -> [Effect] {
    guard let tag = files[entry]?.tag else { return [] }
    untaken.remove(entry)
    if isGone || !isWanted(tag) { files[entry] = nil } else { files[entry]?.isOut = false }
    return !isGone && files[entry] == nil ? [.remove(entry: entry)] : []
  }

  // MARK: Ending

  private mutating func detach() -> [Effect] {
    isAttached = false
    untaken = []
    return failAll(DownloadError(.shutDown, "the source was stopped"))
  }

  private mutating func invalidate(_ error: DownloadError) -> [Effect] {
    failure = error
    let effects = failAll(error)
    tasks = [:]
    // The system reports no more events.
    ready += registered
    registered = []
    return effects
  }

  private mutating func failAll(_ error: DownloadError) -> [Effect] {
    let effects = openings.keys.sorted().map { Effect.deliver($0, .failure(error)) }
    openings = [:]
    for task in tasks.keys { tasks[task]?.opening = nil }
    return effects
  }

  private mutating func callHandlers() -> [Effect] {
    guard !ready.isEmpty else { return [] }
    guard untaken.isEmpty else {
      guard !isClockRunning else { return [] }
      isClockRunning = true
      round += 1
      return [.awaitHandOver(round: round)]
    }
    isClockRunning = false
    defer { ready = [] }
    return [.callHandlers(ready)]
  }
}
