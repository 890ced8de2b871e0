import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct WaitingOutputTests {
  private let busy = DownloadError(.httpStatus, "the server answered 503", httpStatus: 503)
  private func retry(in seconds: Double) -> DownloadStatus {
    Samples.status(.waiting(.retry(at: Samples.now.addingTimeInterval(seconds), after: busy)))
  }
  private var tally: Tally { Tally(total: 1, startedAt: Samples.now) }

  /// What an output writes for a row of statuses.
  private func written(
    _ statuses: [DownloadStatus], _ make: (OutputFile) -> any RunOutput
  ) throws -> [String] {
    let folder = try TemporaryFolder()
    let path = try folder.write([], to: "output")
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    var output = make(OutputFile(descriptor: file.fileDescriptor, patience: Patience()))
    for status in statuses {
      try output.show(status)
      try output.flush(tally, at: Samples.now)
    }
    return String(decoding: try folder.read("output"), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test("JSON tells each wait once, with the time")
  func json() throws {
    let lines = try written([
      Samples.status(.waiting(.turn)), Samples.status(), retry(in: 1800), retry(in: 1800.2), retry(in: 60),
      Samples.status(.waiting(.gate("it is night"))), Samples.status(.waiting(.gate("it is night"))),
    ]) { JSONOutput(isQuiet: false, output: $0) }
    struct Event: Decodable {
      var event: String
      var state: String
      var reason: String?
      var until: String?
    }
    let events = try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
    #expect(events.map(\.state) == ["transferring", "waiting", "waiting", "waiting"])
    #expect(events.map(\.until) == [nil, "2027-01-15T08:30:00Z", "2027-01-15T08:01:00Z", nil])
    #expect(events.last?.reason == "it is night")
  }

  @Test("The plain output tells each wait once, on standard error")
  func plain() throws {
    let statuses = [
      Samples.status(.waiting(.turn)), Samples.status(), retry(in: 1800), retry(in: 1800.2),
      Samples.status(.waiting(.gate("it is night"))), Samples.status(.waiting(.limit("5 at once"))),
    ]
    let time = Formatting.time(Samples.now.addingTimeInterval(1800))
    #expect(
      try written(statuses) { PlainOutput(isQuiet: false, errors: $0) } == [
        "downpipe: https://example.org/film.mkv: waits until \(time): trying again after: the server answered 503",
        "downpipe: https://example.org/film.mkv: waits: it is night",
      ])
    #expect(try written(statuses) { PlainOutput(isQuiet: true, errors: $0) } == [])
  }

  @Test("Times are those of the zone")
  func times() throws {
    let zone = try #require(TimeZone(secondsFromGMT: 3600))
    #expect(Formatting.time(Samples.now, in: zone) == "2027-01-15 09:00:00")
    #expect(Formatting.timestamp(Samples.now) == "2027-01-15T08:00:00Z")
  }

  @Test("The bars tell what is missing")
  func missing() {
    var board = ProgressBoard()
    board.show(Samples.status(.waiting(.missing(.network, until: Samples.now, after: busy))))
    #expect(board.files.count == 1)
  }
}
