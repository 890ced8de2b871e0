import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeBackgroundURLSession

@Suite(.endsHangs)
struct BackgroundRelaunchTests {
  typealias Event = BackgroundTransfers.Event
  private let tag: TransferTag
  private let whole = FinishedAnswer.whole

  init() throws { tag = try makeTag() }

  /// The list of tasks, the opening, the end of the task, the end of the system's events and the app's handler, in
  /// every possible order.
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
          // The handler is called only after all events were delivered and the file was taken.
          #expect(order[...position].contains(4) && order[...position].contains(5), "\(order)")
          #expect(world.out.isEmpty, "\(order)")
          #expect(world.effects.last == .callHandlers([9]), "\(order)")
        }
      }
      // The list may contain a task that has ended: then the opening has a file or a new task.
      #expect(world.outcomes[1] == [.file(entry: "entry-1", tag, whole)], "\(order)")
      #expect(world.called.isEmpty, "the file has not been taken: \(order)")
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
        // The task failed before the opening.
        #expect(world.started.count == 1 && world.resumed.isEmpty, "\(order)")
      }
    }
  }

  @Test func relaunchWithATaskThatGoesOn() {
    var world = World()
    world.tell(.open(1, tag))
    #expect(world.effects.isEmpty, "the tasks have not been listed")
    world.tell(.listed([task(4, tag), task(5, tag)]))
    #expect(world.resumed == [4])
    #expect(world.cancelled == [5], "one of the two tasks is enough")
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
    // A file that was released unread is delivered to the next opening, and to one opening at a time.
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

  /// Only files and tasks that match the present request are delivered.
  @Test(arguments: 0..<7, 0..<7) func staleTasksAndFiles(_ before: Int, _ now: Int) throws {
    let (old, new) = try (
      makeTag("film", Self.others[before].0, Self.others[before].1, ifRange: Self.others[before].2),
      makeTag("film", Self.others[now].0, Self.others[now].1, ifRange: Self.others[now].2)
    )
    let isSame = before == now
    // A running task.
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
    // A file of a task that was not listed.
    var late = World()
    late.tell(.listed([]))
    late.tell(.open(1, new))
    late.tell(finished(1, old))
    #expect((late.outcomes[1] != nil) == isSame)
    #expect(late.effects.contains { if case .keep = $0 { true } else { false } } == isSame)
    // A file that is released when other bytes are requested.
    var back = World([InboxEntry(name: "a", tag: old, answer: whole)])
    back.tell(.listed([]))
    back.tell(.open(1, old))
    back.tell(.open(2, new))
    back.tell(.released(entry: "a", isGone: false))
    #expect(back.removed == (isSame ? [] : ["a"]))
    // Tasks and files of other downloads stay.
    var foreign = World([InboxEntry(name: "a", tag: try makeTag("x"), answer: whole)])
    foreign.tell(.listed([task(1, try makeTag("y"))]))
    foreign.tell(.open(1, new))
    #expect(foreign.cancelled.isEmpty && foreign.removed.isEmpty)
  }

  @Test func unknownTasksAreCancelled() {
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
}
