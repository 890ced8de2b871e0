import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeBackgroundURLSession

@Suite(.endsHangs)
struct BackgroundTransfersTests {
  typealias Event = BackgroundTransfers.Event
  private let tag: TransferTag
  private let whole = FinishedAnswer.whole

  init() throws { tag = try makeTag() }

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
    // The next opening starts a new task.
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
  func failuresAreDeliveredToTheWaitingOpening(_ code: DownloadError.Code) {
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    world.tell(.completed(task: 100, DownloadError(code, "broken")))
    #expect(world.code(1) == code)
    world.tell(.open(2, tag))
    #expect(world.started.count == 2)
    // A cancellation by the system (the user closes the app) is reported as a network error.
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
    // A second request before the system has reported the end.
    var again = World()
    again.tell(.listed([]))
    again.tell(.open(1, tag))
    again.tell(finished(100, tag, answer))
    again.tell(.open(2, tag))
    again.tell(.completed(task: 100, nil))
    #expect(again.started.map(\.opening) == [1, 2])
    #expect(again.outcomes[2] == nil && again.cancelled.isEmpty)
    // Without a waiting opening the refusal is dropped, and the next opening sends a new request.
    var later = World()
    later.tell(.listed([task(1, tag)]))
    later.tell(finished(1, tag, answer))
    later.tell(.completed(task: 1, nil))
    later.tell(.open(1, tag))
    #expect(later.started.count == 1)
    #expect(!(world.effects + later.effects).contains { if case .keep = $0 { true } else { false } })
  }

  @Test func abandonedTasksAreNotDelivered() {
    var world = World()
    world.tell(.listed([]))
    world.tell(.open(1, tag))
    world.tell(.abandon(1))
    #expect(world.cancelled == [100])
    // The task had ended already, and a second opening follows.
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
    // Without a source the handlers do not wait for files to be taken.
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

  @Test func anInvalidSessionFailsOpenings() {
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
