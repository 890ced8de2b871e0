import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct DownloadNotesTests {
  static let done = DownloadState.finished(Artifact(location: .path("/srv/downloads/a"), name: "a"))
  static let failed = DownloadState.failed(DownloadError(.network, "the cable was cut"))
  static let waiting = DownloadState.waiting(.turn)

  private let url = URL(string: "https://example.org/a")!
  private let date = Date(timeIntervalSince1970: 1_000_000_000)

  private func status(_ id: DownloadID, _ state: DownloadState) -> DownloadStatus {
    DownloadStatus(
      id: id, request: DownloadRequest(url, id: id), state: state, progress: TransferProgress(), attempts: 1,
      resumedFrom: 0, bytesFetched: 0, name: nil, createdAt: date, updatedAt: date)
  }

  /// States of a download, and the notes that are told of them.
  struct Course: Sendable {
    var states: [DownloadState]
    var told: [DownloadNotes.Note]

    init(_ states: [DownloadState], _ told: [DownloadNotes.Note]) {
      self.states = states
      self.told = told
    }
  }

  static let courses: [Course] = [
    Course([waiting, .transferring, .transferring, .processing(step: "x"), done], [.start, .complete]),
    // A small download begins and ends between two looks.
    Course([waiting, done], [.start, .complete]),
    Course([done, done, done], [.start, .complete]),
    Course([waiting], []),
    Course([waiting, waiting, .paused, .paused], [.pause]),
    Course([.transferring, .paused, .paused, waiting, .transferring, done], [.start, .pause, .start, .complete]),
    Course([.transferring, .paused, waiting, .paused], [.start, .pause, .pause]),
    Course([.paused, done], [.pause, .start, .complete]),
    Course([.transferring, failed, failed, waiting, .transferring, failed], [.start, .error, .start, .error]),
    Course([failed], [.error]),
    Course([.transferring, .cancelled, .cancelled], [.start, .stop]),
    Course([waiting, .cancelled], [.stop]),
    Course([.paused, .cancelled], [.pause, .stop]),
    Course([done, waiting, .transferring, done], [.start, .complete, .start, .complete]),
  ]

  @Test(arguments: Self.courses)
  func statesAreToldOnce(course: Course) {
    var notes = DownloadNotes()
    var told: [DownloadNotes.Note] = []
    for state in course.states { told += notes.receive(status("a", state)) }
    #expect(told == course.told)
  }

  @Test func downloadsAreToldApart() {
    var notes = DownloadNotes()
    let told = [
      notes.receive(status("a", .transferring)), notes.receive(status("b", .transferring)),
      notes.receive(status("a", Self.done)), notes.receive(status("b", .transferring)),
      notes.receive(status("b", .paused)),
    ]
    #expect(told == [[.start], [.start], [.complete], [], [.pause]])
  }

  static let removals: [Course] = [
    Course([.transferring], [.stop]), Course([.processing(step: "x")], [.stop]), Course([.paused], [.stop]),
    Course([done], []), Course([failed], []), Course([.cancelled], []),
  ]

  @Test(arguments: Self.removals)
  func whatIsRemovedBeforeItsEndWasStopped(course: Course) {
    var notes = DownloadNotes()
    for state in course.states { _ = notes.receive(status("a", state)) }
    let first = notes.receiveRemoval(of: "a")
    #expect(first == course.told)
    let second = notes.receiveRemoval(of: "a")
    #expect(second == [])
    // The same id is a new download afterwards.
    let again = notes.receive(status("a", .transferring))
    #expect(again == [.start])
  }

  @Test func theRemovalOfAnUnknownDownloadIsNoNews() {
    var notes = DownloadNotes()
    let told = notes.receiveRemoval(of: "a")
    #expect(told == [])
  }

  @Test func aBoundedNumberOfEndedDownloadsIsRemembered() {
    var notes = DownloadNotes()
    _ = notes.receive(status("running", .transferring))
    var count = 0
    for number in 0..<10_000 {
      count += notes.receive(status(DownloadID(String(number)), number % 2 == 0 ? Self.done : Self.failed)).count
    }
    #expect(count == 15_000)
    for child in Mirror(reflecting: notes).children {
      #expect(Mirror(reflecting: child.value).children.count <= 4097)
    }
    // The latest ones are known, and what runs is not forgotten.
    let told = [
      notes.receive(status("9998", Self.done)), notes.receive(status("running", .transferring)),
      notes.receive(status("running", Self.done)),
    ]
    #expect(told == [[], [], [.complete]])
  }
}
