import DownpipeCore
import Foundation
import Testing

@testable import DownpipeURLSession

/// Does what the transfers say, in memory, and keeps what came of it.
private struct World {
  typealias Event = BackgroundTransfers.Event
  typealias Effect = BackgroundTransfers.Effect

  var transfers: BackgroundTransfers
  var effects: [Effect] = []
  var outcomes: [Int: [BackgroundTransfers.Outcome]] = [:]
  /// Tasks made here, from 100 on.
  var started: [(task: Int, opening: Int, tag: TransferTag)] = []
  var resumed: [Int] = []
  var cancelled: [Int] = []
  var removed: [String] = []
  var called: [[Int]] = []
  var clocks: [Int] = []
  /// Files handed to somebody who still has them.
  var out: [String] = []
  var isDiskFull = false

  init(_ files: [InboxEntry] = []) {
    transfers = BackgroundTransfers(files: files)
    tell(.attached)
  }

  mutating func tell(_ event: Event) {
    for effect in transfers.handle(event) {
      effects.append(effect)
      switch effect {
      case .start(let opening, let tag):
        let task = 100 + started.count
        started.append((task, opening, tag))
        tell(.started(opening, task: task))
      case .resume(let task): resumed.append(task)
      case .cancel(let task): cancelled.append(task)
      case .keep(let task, let temporary, _, _):
        if isDiskFull {
          tell(.notKept(task: task, DownloadError(.noSpace, "full")))
        } else {
          tell(.kept(task: task, entry: "entry-\(temporary)"))
        }
      case .remove(let entry): removed.append(entry)
      case .deliver(let opening, let outcome):
        outcomes[opening, default: []].append(outcome)
        if case .file(let entry, _, _) = outcome { out.append(entry) }
      case .awaitHandOver(let round): clocks.append(round)
      case .callHandlers(let handlers): called.append(handlers)
      }
    }
  }

  mutating func take() {
    for entry in out { tell(.released(entry: entry, isGone: true)) }
    out = []
  }

  func code(_ opening: Int) -> DownloadError.Code? {
    if case .failure(let error) = outcomes[opening]?.last { error.code } else { nil }
  }
}

/// Every order of `items` in which each pair of `before` keeps its order.
private func orders(_ count: Int, before: [(Int, Int)]) -> [[Int]] {
  func extend(_ order: [Int]) -> [[Int]] {
    if order.count == count { return [order] }
    return (0..<count).filter { next in
      !order.contains(next) && before.allSatisfy { $0.1 != next || order.contains($0.0) }
    }.flatMap { extend(order + [$0]) }
  }
  return extend([])
}

@Suite(.timeLimit(.minutes(1)))
struct BackgroundTransfersTests {
  typealias Event = BackgroundTransfers.Event
  private let tag: TransferTag
  private let whole = FinishedAnswer(status: 200, headers: [], url: "https://example.org/film.mkv")

  init() throws { tag = try makeTag() }

  private func task(_ number: Int, _ tag: TransferTag) -> BackgroundTransfers.TaskReference {
    .init(number: number, description: tag.text)
  }

  private func finished(_ number: Int, _ tag: TransferTag, _ answer: FinishedAnswer? = nil) -> Event {
    .finished(task(number, tag), answer ?? whole, temporary: "\(number)")
  }

  // MARK: One process

  @Test func aTransferFromBeginningToEnd() {
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    #expect(world.started.map(\.tag) == [tag])
    #expect(world.outcomes.isEmpty)
    world.tell(finished(100, tag))
    #expect(world.outcomes == [1: [.file(entry: "entry-100", tag, whole)]])
    world.tell(.completed(task: 100, nil))
    world.take()
    // Everything is forgotten: the next opening begins anew.
    world.tell(.open(2, tag))
    #expect(world.started.map(\.task) == [100, 101])
    #expect(world.cancelled.isEmpty && world.removed.isEmpty && world.called.isEmpty)
  }

  @Test func theFileIsMovedBeforeAnythingElse() {
    var transfers = BackgroundTransfers()
    for event in [Event.attached, .listed([task(1, tag)]), .open(1, tag)] { _ = transfers.handle(event) }
    #expect(transfers.handle(finished(1, tag)) == [.keep(task: 1, temporary: "1", tag, whole)])
    #expect(transfers.handle(.kept(task: 1, entry: "e")) == [.deliver(1, .file(entry: "e", tag, whole))])
  }

  @Test(arguments: [DownloadError.Code.network, .timedOut, .tls])
  func failuresAreForWhoWaits(_ code: DownloadError.Code) {
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    world.tell(.completed(task: 100, DownloadError(code, "broken")))
    #expect(world.code(1) == code)
    world.tell(.open(2, tag))
    #expect(world.started.count == 2)
    // The system's own cancelling (the user swipes the app away) is no wish of ours.
    world.tell(.completed(task: 101, DownloadError(.cancelled, "by the user")))
    #expect(world.code(2) == .network)
    world.tell(.open(3, tag))
    world.tell(.completed(task: 102, nil))
    #expect(world.code(3) == .invalidResponse)
    world.isDiskFull = true
    world.tell(.open(4, tag))
    world.tell(finished(103, tag))
    world.tell(.completed(task: 103, nil))
    #expect(world.code(4) == .noSpace)
    #expect(world.outcomes.values.allSatisfy { $0.count == 1 })
  }

  @Test(arguments: [304, 401, 404, 416, 503]) func refusalsAreReplies(_ status: Int) {
    let answer = FinishedAnswer(status: status, headers: [], url: "https://example.org/film.mkv")
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    world.tell(finished(100, tag, answer))
    world.tell(.completed(task: 100, nil))
    #expect(world.outcomes == [1: [.refusal(answer, tag)]])
    // Asked again before the system has told of the end.
    var again = World()
    again.tell(.listed([]))
    again.tell(.open(1, tag))
    again.tell(finished(100, tag, answer))
    again.tell(.open(2, tag))
    again.tell(.completed(task: 100, nil))
    #expect(again.started.map(\.opening) == [1, 2])
    #expect(again.outcomes[2] == nil && again.cancelled.isEmpty)
    // Nobody waits: it is forgotten, and asked again.
    var later = World()
    later.tell(.listed([task(1, tag)]))
    later.tell(finished(1, tag, answer))
    later.tell(.completed(task: 1, nil))
    later.tell(.open(1, tag))
    #expect(later.started.count == 1)
    #expect(!(world.effects + later.effects).contains { if case .keep = $0 { true } else { false } })
  }

  @Test func whatIsAbandonedIsNeverHandedOver() {
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    world.tell(.abandon(1))
    #expect(world.cancelled == [100])
    // It had ended already, and somebody asks again.
    world.tell(.open(2, tag))
    world.tell(finished(100, tag))
    world.tell(.completed(task: 100, nil))
    #expect(world.started.map(\.opening) == [1, 2])
    #expect(world.outcomes.isEmpty)
    world.tell(finished(101, tag))
    #expect(world.outcomes == [2: [.file(entry: "entry-101", tag, whole)]])
    world.tell(.abandon(2))
    world.tell(.abandon(7))
    #expect(world.cancelled == [100])
  }

  @Test func abandonedBeforeTheTasksAreListed() {
    var world = World()
    world.tell(.open(1, tag))
    world.tell(.abandon(1))
    world.tell(.listed([task(1, tag)]))
    #expect(world.started.isEmpty && world.resumed.isEmpty && world.outcomes.isEmpty)
  }

  @Test(arguments: [false, true]) func theSameOpeningTwice(_ isListed: Bool) {
    var world = World()
    if isListed { world.tell(.listed([])) }
    world.tell(.open(1, tag))
    world.tell(.open(2, tag))
    #expect(world.code(1) == .cancelled)
    if !isListed { world.tell(.listed([])) }
    #expect(world.started.count == 1)
    world.tell(.abandon(1))
    #expect(world.cancelled.isEmpty)
    world.tell(finished(100, tag))
    #expect(world.outcomes[2] == [.file(entry: "entry-100", tag, whole)])
  }

  @Test func rangesOfOneDownloadAtOnce() throws {
    var world = World()
    world.tell(.listed([]))
    let parts = try (0..<3).map {
      try makeTag("film", "https://a/", RequestedRange(from: Int64($0), to: Int64($0) + 1))
    }
    for (number, part) in parts.enumerated() { world.tell(.open(number, part)) }
    #expect(world.started.map(\.tag) == parts)
    for number in [2, 0, 1] { world.tell(finished(100 + number, parts[number])) }
    for (number, part) in parts.enumerated() {
      #expect(world.outcomes[number] == [.file(entry: "entry-\(100 + number)", part, whole)])
    }
    #expect(world.cancelled.isEmpty && world.removed.isEmpty)
  }

  // MARK: Relaunch

  /// Listing, opening, the end of the task, the system's word that all was told, the app's handler: in every order
  /// that can happen.
  @Test func relaunchWithATaskThatEndsWell() {
    let events: [Event] = [
      .listed([task(1, tag)]), .open(1, tag), finished(1, tag), .completed(task: 1, nil), .eventsDelivered,
      .handlerRegistered(9),
    ]
    let all = orders(events.count, before: [(2, 3), (3, 4)])
    #expect(all.count == 120)
    for order in all {
      var world = World()
      for (position, index) in order.enumerated() {
        let isOver = world.called.isEmpty
        world.tell(events[index])
        if isOver, !world.called.isEmpty {
          // Never before everything was told and the file taken.
          #expect(order[...position].contains(4) && order[...position].contains(5), "\(order)")
          #expect(world.out.isEmpty, "\(order)")
          #expect(world.effects.last == .callHandlers([9]), "\(order)")
        }
      }
      // The list may show a task that was told of before: then the opening has a file already, or a new task.
      #expect(world.outcomes[1] == [.file(entry: "entry-1", tag, whole)], "\(order)")
      #expect(world.called.isEmpty, "the file is not taken yet: \(order)")
      #expect(Set(world.started.map(\.task)) == Set(world.cancelled), "\(order)")
      world.take()
      #expect(world.called == [[9]], "\(order)")
      #expect(world.effects.last == .callHandlers([9]), "\(order)")
      #expect(world.removed.isEmpty, "\(order)")
    }
  }

  @Test func relaunchWithATaskThatFailed() {
    let error = DownloadError(.network, "broken")
    let events: [Event] = [
      .listed([task(1, tag)]), .open(1, tag), .completed(task: 1, error), .eventsDelivered, .handlerRegistered(9),
    ]
    for order in orders(events.count, before: [(2, 3)]) {
      var world = World()
      for index in order { world.tell(events[index]) }
      #expect(world.called == [[9]], "\(order)")
      if let outcomes = world.outcomes[1] {
        #expect(outcomes == [.failure(error)], "\(order)")
        #expect(world.started.isEmpty, "\(order)")
      } else {
        // The failure was over before anybody asked.
        #expect(world.started.count == 1 && world.resumed.isEmpty, "\(order)")
      }
    }
  }

  @Test func relaunchWithATaskThatGoesOn() {
    var world = World()
    world.tell(.open(1, tag))
    #expect(world.effects.isEmpty, "what runs is not known yet")
    world.tell(.listed([task(4, tag), task(5, tag)]))
    #expect(world.resumed == [4])
    #expect(world.cancelled == [5], "one transfer is enough")
    #expect(world.started.isEmpty)
    world.tell(finished(5, tag))
    #expect(world.outcomes.isEmpty)
    world.tell(finished(4, tag))
    #expect(world.outcomes[1] == [.file(entry: "entry-4", tag, whole)])
  }

  @Test func relaunchWithAFileInTheInbox() throws {
    var world = World([
      InboxEntry(name: "a", tag: tag, answer: whole), InboxEntry(name: "b", tag: tag, answer: whole),
      InboxEntry(name: "c", tag: try makeTag("other"), answer: whole),
    ])
    world.tell(.listed([task(1, tag)]))
    world.tell(.open(1, tag))
    #expect(world.outcomes[1] == [.file(entry: "a", tag, whole)])
    #expect(world.removed == ["b"])
    #expect(world.cancelled == [1])
    #expect(world.started.isEmpty)
    // Nobody took it: the next opening gets it. It is not handed out twice at once.
    world.tell(.open(2, tag))
    #expect(world.started.count == 1)
    world.tell(.abandon(2))
    world.tell(.released(entry: "a", isGone: false))
    world.tell(.open(3, tag))
    #expect(world.outcomes[3] == [.file(entry: "a", tag, whole)])
    world.tell(.released(entry: "a", isGone: true))
    world.tell(.open(4, tag))
    #expect(world.started.count == 2)
  }

  static let others: [(String, RequestedRange?, String?)] = [
    ("https://example.org/other", nil, nil), ("https://example.org/film.mkv", RequestedRange(from: 0), nil),
    ("https://example.org/film.mkv", RequestedRange(from: 5), nil),
    ("https://example.org/film.mkv", RequestedRange(from: 5, to: 9), nil),
    ("https://example.org/film.mkv", RequestedRange(from: 5), "\"v1\""),
    ("https://example.org/film.mkv", RequestedRange(from: 5), "\"v2\""), ("https://example.org/film.mkv", nil, nil),
  ]

  /// Whatever was asked for before, only what is asked for now is handed over.
  @Test(arguments: 0..<7, 0..<7) func staleTasksAndFiles(_ before: Int, _ now: Int) throws {
    let (old, new) = try (
      makeTag("film", Self.others[before].0, Self.others[before].1, ifRange: Self.others[before].2),
      makeTag("film", Self.others[now].0, Self.others[now].1, ifRange: Self.others[now].2)
    )
    let isSame = before == now
    // A task that runs.
    var running = World()
    running.tell(.listed([task(1, old)]))
    running.tell(.open(1, new))
    #expect(running.cancelled == (isSame ? [] : [1]))
    #expect(running.started.isEmpty == isSame)
    running.tell(finished(1, old))
    #expect((running.outcomes[1] != nil) == isSame)
    // A file in the inbox.
    var kept = World([InboxEntry(name: "a", tag: old, answer: whole)])
    kept.tell(.listed([]))
    kept.tell(.open(1, new))
    #expect(kept.removed == (isSame ? [] : ["a"]))
    #expect((kept.outcomes[1] != nil) == isSame)
    // A file that comes late, of a task that nobody has listed.
    var late = World()
    late.tell(.listed([]))
    late.tell(.open(1, new))
    late.tell(finished(1, old))
    #expect((late.outcomes[1] != nil) == isSame)
    #expect(late.effects.contains { if case .keep = $0 { true } else { false } } == isSame)
    // A file that is given back when something else is wanted.
    var back = World([InboxEntry(name: "a", tag: old, answer: whole)])
    back.tell(.listed([]))
    back.tell(.open(1, old))
    back.tell(.open(2, new))
    back.tell(.released(entry: "a", isGone: false))
    #expect(back.removed == (isSame ? [] : ["a"]))
    // Another download's are left alone.
    var foreign = World([InboxEntry(name: "a", tag: try makeTag("x"), answer: whole)])
    foreign.tell(.listed([task(1, try makeTag("y"))]))
    foreign.tell(.open(1, new))
    #expect(foreign.cancelled.isEmpty && foreign.removed.isEmpty)
  }

  @Test func tasksOfNobodyAreCancelled() {
    var world = World()
    world.tell(.listed([.init(number: 1, description: nil), .init(number: 2, description: "downpipe/9 {}")]))
    #expect(world.cancelled == [1, 2])
    world.tell(.finished(.init(number: 2, description: "downpipe/9 {}"), whole, temporary: "2"))
    world.tell(.finished(.init(number: 3, description: nil), whole, temporary: "3"))
    world.tell(.completed(task: 3, nil))
    world.tell(.kept(task: 3, entry: "a"))
    #expect(world.removed == ["a"])
    #expect(world.outcomes.isEmpty)
  }

  // MARK: Handlers

  @Test func handlersAreCalledWhenNothingHappened() {
    for events in [[Event.eventsDelivered, .handlerRegistered(1)], [.handlerRegistered(1), .eventsDelivered]] {
      var world = World()
      for event in events {
        #expect(world.called.isEmpty)
        world.tell(event)
      }
      #expect(world.called == [[1]])
    }
  }

  @Test func eachHandlerIsCalledOnce() {
    var world = World()
    world.tell(.handlerRegistered(1))
    world.tell(.handlerRegistered(2))
    world.tell(.eventsDelivered)
    #expect(world.called == [[1, 2]])
    // The next time the system wakes the app.
    world.tell(.handlerRegistered(3))
    #expect(world.called == [[1, 2]])
    world.tell(.eventsDelivered)
    world.tell(.eventsDelivered)
    world.tell(.handlerRegistered(4))
    #expect(world.called == [[1, 2], [3], [4]])
    world.tell(.handlerRegistered(5))
    #expect(world.called.count == 3)
  }

  @Test func filesThatNobodyTakesHoldHandlersUpForAWhileOnly() {
    var world = World()
    world.tell(.listed([task(1, tag)]))
    world.tell(.handlerRegistered(1))
    world.tell(finished(1, tag))
    world.tell(.completed(task: 1, nil))
    #expect(world.clocks.isEmpty)
    world.tell(.eventsDelivered)
    #expect(world.called.isEmpty && world.clocks == [1])
    world.tell(.handlerRegistered(2))
    world.tell(.patienceEnded(round: 0))
    #expect(world.called.isEmpty && world.clocks == [1])
    world.tell(.patienceEnded(round: 1))
    #expect(world.called == [[1]])
    world.tell(.patienceEnded(round: 1))
    #expect(world.called == [[1]])
    // The file is still there, and an old clock ends nothing.
    world.tell(.open(1, tag))
    #expect(world.outcomes[1] == [.file(entry: "entry-1", tag, whole)])
    world.tell(.open(2, tag))
    world.tell(finished(100, tag))
    world.tell(.eventsDelivered)
    #expect(world.clocks == [1, 2])
    world.tell(.patienceEnded(round: 1))
    #expect(world.called == [[1]])
    world.take()
    #expect(world.called == [[1], [2]])
    world.tell(.patienceEnded(round: 2))
    #expect(world.called.count == 2)
  }

  @Test func filesFromBeforeDoNotHoldHandlersUp() {
    var world = World([InboxEntry(name: "a", tag: tag, answer: whole)])
    world.tell(.handlerRegistered(1))
    world.tell(.eventsDelivered)
    #expect(world.called == [[1]])
  }

  @Test func handlersWaitForEveryFile() throws {
    let tags = try ["a", "b", "c"].map { try makeTag($0) }
    for order in orders(3, before: []) {
      var world = World()
      world.tell(.listed([]))
      for (number, tag) in tags.enumerated() {
        world.tell(.open(number, tag))
        world.tell(finished(100 + number, tag))
      }
      world.tell(.handlerRegistered(1))
      world.tell(.eventsDelivered)
      for (position, number) in order.enumerated() {
        #expect(world.called.isEmpty)
        // Given back counts, too: it is in safety.
        world.tell(.released(entry: "entry-\(100 + number)", isGone: position != 1))
      }
      #expect(world.called == [[1]])
      world.tell(.released(entry: "entry-100", isGone: true))
      world.tell(.released(entry: "unknown", isGone: false))
      #expect(world.called == [[1]] && world.removed.isEmpty)
    }
  }

  // MARK: The end

  @Test func stoppingLeavesTransfersToTheSystem() {
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    world.tell(.handlerRegistered(1))
    world.tell(.detached)
    #expect(world.code(1) == .shutDown)
    #expect(world.cancelled.isEmpty)
    world.tell(.open(2, tag))
    #expect(world.code(2) == .shutDown)
    // Nobody takes files now, so nobody is waited for.
    world.tell(finished(100, tag))
    world.tell(.completed(task: 100, nil))
    world.tell(.eventsDelivered)
    #expect(world.called == [[1]])
    world.tell(.attached)
    world.tell(.open(3, tag))
    #expect(world.outcomes[3] == [.file(entry: "entry-100", tag, whole)])
    #expect(world.started.count == 1)
  }

  @Test func stoppingWhileFilesAreHeldUp() {
    var world = World()
    world.tell(.listed([task(1, tag)]))
    world.tell(.handlerRegistered(1))
    world.tell(finished(1, tag))
    world.tell(.eventsDelivered)
    #expect(world.called.isEmpty)
    world.tell(.detached)
    #expect(world.called == [[1]])
  }

  @Test func aSessionThatIsGone() {
    var world = World()
    world.tell(.listed([]))
    world.tell(.handlerRegistered(1))
    world.tell(.open(1, tag))
    world.tell(.invalidated(DownloadError(.network, "gone")))
    world.tell(.open(2, tag))
    #expect(world.code(1) == .network && world.code(2) == .network)
    #expect(world.called == [[1]])
    #expect(world.started.count == 1)
  }
}
