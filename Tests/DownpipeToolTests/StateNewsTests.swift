import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct StateNewsTests {
  private let busy = DownloadError(.httpStatus, "the server answered 503", httpStatus: 503)
  private func retry(in seconds: Double) -> DownloadStatus {
    Samples.status(.waiting(.retry(at: Samples.now.addingTimeInterval(seconds), after: busy)))
  }
  private let gate = Samples.status(.waiting(.gate(id: "gate", text: "it is night")))

  @Test("A state is news once, and again with another reason or time")
  func changes() {
    var news = StateNews()
    let statuses = [
      Samples.status(), Samples.status(received: 1), retry(in: 1800), retry(in: 1800.2), retry(in: 60), gate, gate,
      Samples.status(.waiting(.turn)), Samples.status(.waiting(.limit(id: "Limits", text: "5 at once"))), gate,
    ]
    let isNews = statuses.map { news.isNews($0) }
    #expect(isNews == [true, false, true, false, true, true, false, true, false, true])
  }

  @Test("A download that waits for its first turn is no news")
  func turn() {
    var news = StateNews()
    let waiting = Samples.status(.waiting(.turn))
    let isNews = [news.isNews(waiting), news.isNews(Samples.status()), news.isNews(waiting)]
    news.forget(waiting.id)
    let last = news.isNews(waiting)
    #expect(isNews + [last] == [false, true, true, false])
  }

  /// What an output writes for a row of statuses.
  private func written(
    _ statuses: [DownloadStatus], _ make: (OutputFile) -> any RunOutput & Sendable
  ) async throws -> [String] {
    let folder = try TemporaryFolder()
    let path = try folder.write([], to: "output")
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    let monitor = RunMonitor(output: make(OutputFile(descriptor: file.fileDescriptor, deadline: WriteDeadline())))
    for status in statuses {
      _ = await monitor.include(status.id)
      try await monitor.receive([status])
    }
    return String(decoding: try folder.read("output"), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test("JSON has a line for each wait, with the time")
  func json() async throws {
    let lines = try await written([
      Samples.status(.waiting(.turn)), Samples.status(), Samples.status(received: 1), retry(in: 1800),
      retry(in: 1800.2),
      retry(in: 60), gate, gate,
    ]) { JSONOutput(isQuiet: false, output: $0) }
    struct Event: Decodable {
      var event: String
      var state: String?
      var reason: String?
      var until: String?
    }
    let events = try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
    #expect(events.map(\.state) == ["transferring", nil, "waiting", "waiting", "waiting"])
    #expect(events.map(\.until) == [nil, nil, "2027-01-15T08:30:00Z", "2027-01-15T08:01:00Z", nil])
    #expect(events[1].event == "progress" && events.last?.reason == "it is night")
  }

  @Test("The plain output has a message for each wait on standard error, unless it is quiet")
  func plain() async throws {
    let statuses = [Samples.status(.waiting(.turn)), Samples.status(), retry(in: 1800), retry(in: 1800.2), gate]
    let lines = try await written(statuses) { PlainOutput(isQuiet: false, errors: $0) }
    #expect(lines.count == 2)
    #expect(lines[0].contains(" until ") && lines[0].contains("the server answered 503"))
    #expect(lines[1] == "downpipe: https://example.org/film.mkv: waiting: it is night")
    #expect(try await written(statuses) { PlainOutput(isQuiet: true, errors: $0) } == [])
  }

  @Test("Messages have local times")
  func times() throws {
    let zone = try #require(TimeZone(secondsFromGMT: 3600))
    let message = PlainOutput.message(waiting: retry(in: 0), in: zone)
    #expect(message?.hasPrefix("https://example.org/film.mkv: waiting until 2027-01-15 09:00:00: ") == true)
  }

  @Test("The board has a row for a download that waits for the network")
  func missing() {
    var board = ProgressBoard()
    board.show(Samples.status(.waiting(.missing(.network, until: Samples.now, after: busy))))
    #expect(board.running.count == 1)
  }
}
