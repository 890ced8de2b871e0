import DownpipeCore
import Foundation
import Synchronization
import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct RunMonitorTests {
  /// Keeps what it is told.
  private final class Record: RunOutput, Sendable {
    struct State {
      var words: [LastWord] = []
      var statuses = 0
    }
    let state = Mutex(State())
    func show(_ status: DownloadStatus) { state.withLock { $0.statuses += 1 } }
    func show(_ word: LastWord) { state.withLock { $0.words.append(word) } }
    func flush(_ tally: Tally, at now: Date) {}
    func end(_ tally: Tally, at now: Date) {}
    var words: [LastWord] { state.withLock { $0.words } }
    var statuses: Int { state.withLock { $0.statuses } }
  }

  private func status(_ url: String, _ state: DownloadState) -> DownloadStatus { Samples.status(state, url: url) }
  private let done = DownloadState.finished(Artifact(location: .path("/f"), name: "f", size: .known(7)))

  @Test("Each download of the command has one last word, others have none")
  func once() async throws {
    let record = Record()
    let monitor = RunMonitor(output: record)
    let (mine, other) = (status("http://a/1", done), status("http://a/2", done))
    #expect(await monitor.take(mine.id))
    #expect(await monitor.take(mine.id) == false)
    #expect(await monitor.isOver == false)
    await monitor.tookAll()
    try await monitor.receive([status("http://a/1", .transferring), status("http://a/2", .transferring)])
    #expect(record.statuses == 1)
    try await monitor.receive([mine, other])
    try await monitor.receive([mine])
    #expect(record.words.map(\.id) == [mine.id])
    #expect(await monitor.isOver)
    let result = await monitor.result
    #expect(result.finished == 1 && result.total == 1 && result.finishedBytes == 7)
  }

  @Test("It is not over while URLs are still being read")
  func reading() async throws {
    let monitor = RunMonitor(output: Record())
    let mine = status("http://a/1", done)
    _ = await monitor.take(mine.id)
    try await monitor.receive([mine])
    #expect(await monitor.isOver == false)
    await monitor.tookAll()
    #expect(await monitor.isOver)
  }

  @Test(
    "What failed, was cancelled or paused has failed",
    arguments: [
      DownloadState.failed(DownloadError(.noSpace, "full")), .cancelled, .paused,
    ])
  func failed(_ state: DownloadState) async throws {
    let record = Record()
    let monitor = RunMonitor(output: record)
    let mine = status("http://a/1", state)
    _ = await monitor.take(mine.id)
    try await monitor.receive([mine])
    #expect(record.words.first?.isFinished == false)
    #expect(await monitor.result.failed == 1)
  }
}

@Suite(.timeLimit(.minutes(1)))
struct ProgressBoardTests {
  private let now = Samples.now

  private func tally(_ total: Int, finished: Int = 0, bytes: Int64 = 0) -> Tally {
    Tally(total: total, finished: finished, finishedBytes: bytes, startedAt: now, isComplete: true)
  }

  @Test("Bytes of an earlier run do not count as fetched")
  func resumed() {
    var board = ProgressBoard()
    board.show(Samples.status(received: 1000, total: .known(2000), resumedFrom: 900, bytesFetched: 1000))
    #expect(board.fetched == 100)
    board.show(Samples.status(received: 1500, total: .known(2000), resumedFrom: 900, bytesFetched: 1500))
    #expect(board.fetched == 600)
  }

  @Test("Rows keep their order, and go when a file is over")
  func rows() {
    var board = ProgressBoard()
    for name in ["a", "b", "c"] { board.show(Samples.status(name: name, url: "http://h/\(name)")) }
    board.show(Samples.status(name: "a", received: 5, url: "http://h/a"))
    #expect(board.files.map(\.name) == ["a", "b", "c"])
    board.show(Samples.status(.waiting(.turn), name: "b", url: "http://h/b"))
    #expect(board.files.map(\.name) == ["a", "c"])
  }

  @Test("Speed and time left are those of the whole")
  func speed() {
    var board = ProgressBoard()
    board.show(Samples.status(received: 0, total: .known(10_000)))
    _ = board.total(tally(1), at: now)
    board.show(Samples.status(received: 2000, total: .known(10_000)))
    let line = board.total(tally(1), at: now.addingTimeInterval(2))
    #expect(line.bytesPerSecond == 1000)
    #expect(line.timeRemaining == .seconds(8))
    #expect(!line.isEstimate && line.bytes == "1.95 KiB of 9.77 KiB")
    // Three more of which nothing is known yet: as large as the one that is.
    let more = board.total(tally(4), at: now.addingTimeInterval(2))
    #expect(more.isEstimate && more.timeRemaining == .seconds(38))
  }
}
