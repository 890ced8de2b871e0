import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeBackgroundURLSession

@Suite(.endsHangs)
struct BackgroundHandlerTests {
  typealias Event = BackgroundTransfers.Event
  private let tag: TransferTag
  private let whole = FinishedAnswer.whole

  init() throws { tag = try makeTag() }

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
    // The next launch by the system.
    world.tell(.handlerRegistered(3))
    #expect(world.called == [[1, 2]])
    world.tell(.eventsDelivered)
    world.tell(.eventsDelivered)
    world.tell(.handlerRegistered(4))
    #expect(world.called == [[1, 2], [3], [4]])
    world.tell(.handlerRegistered(5))
    #expect(world.called.count == 3)
  }

  @Test func untakenFilesDelayHandlersForALimitedTime() {
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
    // The file still exists, and an old timer has no effect.
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

  @Test("CX: the app's completion handler is called after all background events were handled")
  func handlersWaitForEveryFile() throws {
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
        // A released file counts too, because it is in the inbox.
        world.tell(.released(entry: "entry-\(100 + number)", isGone: position != 1))
      }
      #expect(world.called == [[1]])
      world.tell(.released(entry: "entry-100", isGone: true))
      world.tell(.released(entry: "unknown", isGone: false))
      #expect(world.called == [[1]] && world.removed.isEmpty)
    }
  }
}
