import DownpipeCore
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct RunMonitorTests {
  private final class Record: RunOutput, Sendable {
    func show(_ notice: DownloadNotice) {}
    struct State {
      var results: [DownloadResult] = []
      var statuses = 0
    }
    let state = Mutex(State())
    func show(_ status: DownloadStatus, isNews: Bool) { state.withLock { $0.statuses += 1 } }
    func show(_ result: DownloadResult) { state.withLock { $0.results.append(result) } }
    func flush(_ tally: Tally, at now: Date) {}
    func end(_ tally: Tally, at now: Date) {}
    var results: [DownloadResult] { state.withLock { $0.results } }
    var statuses: Int { state.withLock { $0.statuses } }
  }

  private func status(_ url: String, _ state: DownloadState) -> DownloadStatus { Samples.status(state, url: url) }
  private let done = DownloadState.finished(Artifact(location: .path("/f"), name: "f", size: .known(7)))

  @Test("Each download of the command has one result, others have none")
  func once() async throws {
    let record = Record()
    let monitor = RunMonitor(output: record)
    let (mine, other) = (status("http://a/1", done), status("http://a/2", done))
    #expect(await monitor.include(mine.id))
    #expect(await monitor.include(mine.id) == false)
    #expect(await monitor.isOver == false)
    await monitor.tookAll()
    try await monitor.receive([status("http://a/1", .transferring), status("http://a/2", .transferring)])
    #expect(record.statuses == 1)
    try await monitor.receive([mine, other])
    try await monitor.receive([mine])
    #expect(record.results.map(\.id) == [mine.id])
    #expect(await monitor.isOver)
    let result = await monitor.result
    #expect(result.finished == 1 && result.total == 1 && result.finishedBytes == 7)
  }

  @Test("A command is not over while URLs are being read")
  func reading() async throws {
    let monitor = RunMonitor(output: Record())
    let mine = status("http://a/1", done)
    _ = await monitor.include(mine.id)
    try await monitor.receive([mine])
    #expect(await monitor.isOver == false)
    await monitor.tookAll()
    #expect(await monitor.isOver)
  }

  @Test(
    "Failed, cancelled and paused downloads count as failed",
    arguments: [
      DownloadState.failed(DownloadError(.noSpace, "full")), .cancelled, .paused,
    ])
  func failed(_ state: DownloadState) async throws {
    let record = Record()
    let monitor = RunMonitor(output: record)
    let mine = status("http://a/1", state)
    _ = await monitor.include(mine.id)
    try await monitor.receive([mine])
    #expect(record.results.first?.isFinished == false)
    #expect(await monitor.result.failed == 1)
  }
}

@Suite(.endsHangs)
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

  @Test("Rows keep their order, and disappear when a download waits for its turn")
  func rows() {
    var board = ProgressBoard()
    for name in ["a", "b", "c"] { board.show(Samples.status(name: name, url: "http://h/\(name)")) }
    board.show(Samples.status(name: "a", received: 5, url: "http://h/a"))
    #expect(board.running.map(\.name) == ["a", "b", "c"])
    board.show(Samples.status(.waiting(.turn), name: "b", url: "http://h/b"))
    #expect(board.running.map(\.name) == ["a", "c"])
  }

  /// Servers choose the lengths of two files.
  @Test("Sums that exceed the largest number stay there")
  func overflow() {
    var board = ProgressBoard()
    var tally = tally(4)
    for name in ["a", "b"] {
      let status = Samples.status(received: .max, total: .known(.max), url: "http://h/\(name)")
      board.show(status)
    }
    #expect(board.fetched == .max)
    for name in ["c", "d"] {
      let result = Samples.result(bytes: .max, url: "http://h/\(name)")
      tally.count(result)
      board.show(result)
    }
    #expect(tally.finishedBytes == .max)
    let most = ByteFormat.binary.format(.max)
    #expect(board.summary(tally, at: now).prefix(2) == ["2/4 files", "\(most) of \(most)"])
    #expect(board.closing(tally, at: now).contains("\(most) fetched"))
    for name in ["a", "b"] { board.show(Samples.status(.waiting(.turn), received: .max, url: "http://h/\(name)")) }
    #expect(board.fetched == .max)
  }

  @Test("Speed and time left are sums over all downloads")
  func speed() {
    var board = ProgressBoard()
    board.show(Samples.status(received: 0, total: .known(10_000)))
    _ = board.summary(tally(1), at: now)
    board.show(Samples.status(received: 2000, total: .known(10_000)))
    let one = board.summary(tally(1), at: now.addingTimeInterval(2))
    #expect(one == ["0/1 files", "1.95 KiB of 9.77 KiB", "1000 B/s", "0:08 left"])
    // Three more of unknown size are taken to be as large.
    let four = board.summary(tally(4), at: now.addingTimeInterval(2))
    #expect(four == ["0/4 files", "1.95 KiB", "1000 B/s", "about 0:38 left"])
  }
}
