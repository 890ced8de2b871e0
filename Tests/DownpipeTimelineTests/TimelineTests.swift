import DownpipeCore
import DownpipeTesting
import DownpipeTimeline
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct TimelineTests {
  private let request = DownloadRequest(URL(filePath: "/a"), id: "a")
  private let error = DownloadError(.network, "broken")
  private var artifact: Artifact { Artifact(location: .memory([1]), name: "a", size: .known(1)) }

  /// The changes of a sequence of events, each with its second.
  private func changes(_ events: [(Int, DownloadEvent.Kind)]) -> [Timeline.Kind] {
    var timeline = Timeline()
    return events.flatMap { second, kind in
      timeline.receive(DownloadEvent(request, kind, instant: .seconds(second))).map(\.kind)
    }
  }

  @Test func aDownloadHasWaitsAttemptsAndSteps() {
    let later = Date(timeIntervalSince1970: 4_000_000_000)
    let changes = changes([
      (0, .state(.waiting(.turn))), (1, .state(.waiting(.limit(id: "Limits", text: "1 of 1")))),
      (2, .state(.waiting(.limit(id: "Limits", text: "2 of 2")))),
      (5, .state(.transferring)), (6, .started(attempt: 1, from: 0)), (7, .progress(TransferProgress(fetched: 500))),
      (8, .progress(TransferProgress(fetched: 800))), (9, .attemptFailed(error)),
      (9, .state(.waiting(.retry(at: later, after: error)))), (20, .state(.transferring)),
      (21, .started(attempt: 2, from: 800)), (22, .started(attempt: 2, from: 900)),
      (23, .progress(TransferProgress(fetched: 300))), (24, .state(.processing(step: "Gunzip"))),
      (30, .stepFinished(name: "Gunzip")), (31, .state(.finished(artifact))),
      // After the end, progress and repeated states change nothing.
      (32, .progress(TransferProgress(fetched: 300))), (33, .state(.finished(artifact))),
    ])
    #expect(
      changes == [
        .began, .beganPart(.waiting(for: .turn)),
        .endedPart(.waiting(for: .turn), after: .seconds(1), nil), .beganPart(.waiting(for: .limit)),
        .endedPart(.waiting(for: .limit), after: .seconds(4), nil), .beganPart(.attempt),
        .replied(after: .seconds(1)), .fetched(500), .fetched(300),
        .endedPart(.attempt, after: .seconds(4), error), .beganPart(.waiting(for: .retry)),
        .endedPart(.waiting(for: .retry), after: .seconds(11), nil), .beganPart(.attempt),
        .replied(after: .seconds(1)), .fetched(300),
        .endedPart(.attempt, after: .seconds(4), nil), .beganPart(.step("Gunzip")),
        .endedPart(.step("Gunzip"), after: .seconds(6), nil), .ended(.finished, after: .seconds(31)),
      ])
  }

  @Test(
    "a part ends in every ending",
    arguments: [
      (DownloadEvent.Kind.state(.paused), Timeline.Ending.paused), (.state(.cancelled), .cancelled),
      (.removed, .removed), (.state(.failed(DownloadError(.network, "broken"))), .failed(.init(.network, "broken"))),
    ])
  func everyEnding(_ event: DownloadEvent.Kind, _ ending: Timeline.Ending) {
    let error: DownloadError? = if case .failed(let error) = ending { error } else { nil }
    let changes = changes([(1, .state(.transferring)), (3, event), (4, event)])
    #expect(
      changes == [
        .began, .beganPart(.attempt), .endedPart(.attempt, after: .seconds(2), error),
        .ended(ending, after: .seconds(2)),
      ])
  }

  @Test func aLateReaderMeasuresOnlyWhatItSaw() {
    #expect(
      changes([(1, .started(attempt: 3, from: 10)), (2, .state(.finished(artifact)))]) == [
        .began, .beganPart(.attempt), .endedPart(.attempt, after: .seconds(1), nil), .ended(.finished, after: nil),
      ])
    #expect(changes([(1, .progress(TransferProgress(fetched: 9)))]).isEmpty)
    #expect(changes([(1, .stepFinished(name: "a")), (2, .removed), (3, .state(.paused))]).isEmpty)
  }

  @Test func memoryIsBounded() {
    var timeline = Timeline(capacity: 10)
    for number in 0..<1000 {
      let request = DownloadRequest(URL(filePath: "/a"), id: DownloadID("\(number)"))
      _ = timeline.receive(DownloadEvent(request, .state(.waiting(.turn))))
    }
    #expect(timeline.count == 10)
    // Downloads that run are followed although those that wait fill the timeline.
    var begun = 0
    var ended = 0
    for number in 0..<1000 {
      let request = DownloadRequest(URL(filePath: "/a"), id: DownloadID("r\(number)"))
      let changes = timeline.receive(DownloadEvent(request, .state(.transferring)))
      begun += changes.count { $0.kind == .began }
      ended += changes.count { if case .ended(.forgotten, _) = $0.kind { true } else { false } }
      #expect(timeline.count <= 20)
    }
    #expect(begun == 1000)
    #expect(ended + timeline.count == 1010)
  }

  /// Random events, also impossible sequences: every part that begins ends once, before the next one and before its
  /// download.
  @Test(arguments: 0..<50)
  func partsNeverOverlap(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var timeline = Timeline(capacity: 4)
    let later = Date(timeIntervalSince1970: 4_000_000_000)
    let kinds: [DownloadEvent.Kind] = [
      .state(.waiting(.turn)), .state(.waiting(.gate(id: "gate", text: "g"))),
      .state(.waiting(.retry(at: later, after: error))),
      .state(.transferring), .state(.processing(step: "s")), .state(.paused), .state(.finished(artifact)),
      .state(.failed(error)), .state(.cancelled), .removed, .started(attempt: 1, from: 0), .attemptFailed(error),
      .restarted(error), .refused(error), .stepFinished(name: "s"), .stepFinished(name: "t"),
      .progress(TransferProgress(fetched: 5)), .progress(TransferProgress(fetched: .max)),
      .progress(TransferProgress(fetched: -1)),
    ]
    var open: [DownloadID: Timeline.Part?] = [:]
    func check(_ changes: [Timeline.Change]) {
      for change in changes {
        switch change.kind {
        case .began:
          #expect(open[change.id] == nil)
          open[change.id] = .some(nil)
        case .beganPart(let part):
          #expect(open[change.id] == .some(nil))
          open[change.id] = part
        case .replied(let time): #expect(time >= .zero && open[change.id] == .attempt)
        case .fetched(let bytes): #expect(bytes > 0 && open[change.id] == .attempt)
        case .endedPart(let part, let time, _):
          #expect(open[change.id] == part && time >= .zero)
          open[change.id] = .some(nil)
        case .ended:
          #expect(open[change.id] == .some(nil))
          open[change.id] = nil
        }
      }
    }
    for _ in 0..<500 {
      let request = DownloadRequest(URL(filePath: "/a"), id: DownloadID("\(Int.random(in: 0..<12, using: &generator))"))
      guard let kind = kinds.randomElement(using: &generator) else { continue }
      // Clocks of events may go back.
      let instant = Duration.seconds(Int.random(in: -5..<100, using: &generator))
      check(timeline.receive(DownloadEvent(request, kind, instant: instant)))
      #expect(open.count == timeline.count)
    }
    check(timeline.end())
    #expect(open.isEmpty)
  }
}
