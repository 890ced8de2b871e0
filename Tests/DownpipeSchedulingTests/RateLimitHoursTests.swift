import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A rate limit with hours applies during a part of each day, also when clocks change or are set.
@Suite(.endsHangs)
struct RateLimitHoursTests {
  private let url = URL(string: "https://example.org/film")!
  /// A second for each chunk of 10,000 bytes, and a tenth of a second's bytes at full speed.
  private let rate = ByteRate.bytesPerSecond(10_000)
  private static let pauseOfAChunk: Duration = .milliseconds(900)

  private func window(_ from: String, _ to: String, _ zone: String = "GMT") throws -> DailyWindow {
    DailyWindow(
      from: try #require(TimeOfDay(from)), to: try #require(TimeOfDay(to)),
      in: try #require(TimeZone(identifier: zone)) as TimeZone)
  }

  private func time(_ text: String) throws -> VirtualTime { VirtualTime(date: try Date(text, strategy: .iso8601)) }

  /// The pause of a transfer that has received a chunk after an idle time.
  private func pause(_ session: any RateSession, _ time: VirtualTime) -> Duration {
    session.pause(after: 10_000, of: TransferContext("a", Candidate(host: "example.org")), at: time.now)
  }

  /// A window, the date of a start, and whether the limit applies after each of some times.
  struct Row: Sendable, CustomTestStringConvertible {
    var from: String
    var to: String
    var zone = "GMT"
    var start: String
    var steps: [(after: Int, applies: Bool)]
    var testDescription: String { "\(from)-\(to) \(zone) \(start)" }
  }

  private static let rows: [Row] = [
    Row(
      from: "08:00", to: "18:00", start: "2026-06-01T07:59:30Z",
      steps: [(0, false), (29, false), (1, true), (10 * 3600 - 1, true), (1, false), (14 * 3600, true)]),
    // Across midnight.
    Row(
      from: "22:00", to: "06:00", start: "2026-06-01T23:59:59Z",
      steps: [(0, true), (1, true), (6 * 3600 - 1, true), (1, false), (16 * 3600, true)]),
    // Clocks go forward from 02:00 to 03:00: the hours begin at 01:00 UTC, and the day before at 02:00 UTC.
    Row(
      from: "03:00", to: "06:00", zone: "Europe/Berlin", start: "2026-03-29T00:59:59Z",
      steps: [(0, false), (1, true), (3 * 3600 - 1, true), (1, false)]),
    Row(
      from: "03:00", to: "06:00", zone: "Europe/Berlin", start: "2026-03-28T01:59:59Z", steps: [(0, false), (1, true)]),
    // Clocks go back from 03:00 to 02:00: half past two counts once, and the night is an hour longer.
    Row(
      from: "02:30", to: "05:00", zone: "Europe/Berlin", start: "2026-10-25T00:29:59Z",
      steps: [(0, false), (1, true), (3600, true), (2 * 3600 + 1800 - 1, true), (1, false)]),
    Row(from: "05:00", to: "05:00", start: "2026-06-01T04:59:59Z", steps: [(0, true), (1, true), (86_400, true)]),
  ]

  @Test("The limit applies from the first moment of its hours to the last", arguments: rows)
  func hours(row: Row) throws {
    let time = try time(row.start)
    let session = RateLimit(rate, during: try window(row.from, row.to, row.zone)).start(time: time)
    for (after, applies) in row.steps {
      time.advance(by: .seconds(after))
      let pause = session.pause(after: 1_000_000, of: TransferContext("a", Candidate()), at: time.now)
      #expect((pause > .zero) == applies, "\(time.date)")
    }
  }

  @Test("A clock that is set is noticed within a minute")
  func jump() throws {
    let time = try time("2026-06-01T12:00:00Z")
    let session = RateLimit(rate, during: try window("08:00", "18:00")).start(time: time)
    #expect(pause(session, time) == Self.pauseOfAChunk)
    time.jumpDate(by: .seconds(8 * 3600))
    time.advance(by: .seconds(60))
    #expect(pause(session, time) == .zero)
    time.jumpDate(by: .seconds(-8 * 3600))
    time.advance(by: .seconds(60))
    #expect(pause(session, time) == Self.pauseOfAChunk)
  }

  @Test("Debts are forgotten when the hours end")
  func debts() throws {
    let time = try time("2026-06-01T17:59:59Z")
    let session = RateLimit(rate, during: try window("17:00", "18:00")).start(time: time)
    let hour = Duration.seconds(3600)
    #expect(session.pause(after: 10_000 * 86_400, of: TransferContext("a", Candidate()), at: time.now) > hour * 20)
    time.advance(by: .seconds(1))
    #expect(session.pause(after: 0, of: TransferContext("a", Candidate()), at: time.now) == .zero)
    time.advance(by: hour * 23)
    #expect(pause(session, time) == Self.pauseOfAChunk)
  }

  // MARK: In a downloader

  private func downloader(
    _ source: FakeSource, _ time: VirtualTime, _ limits: RateLimit...
  ) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(time: time, minimumSpeed: nil)) {
      source
      for limit in limits { limit }
      FakeStorage()
    }
  }

  private func source(holdingAfter count: Int) -> FakeSource {
    FakeSource([
      url: [
        .init(DownloadFixtures.pattern(size: 100_000)).with { $0.chunkSize = 10_000 }.holding(after: count)
      ]
    ])
  }

  @Test("A running transfer slows down when clocks go forward into the hours, and speeds up when they are set back")
  func runningTransfer() async throws {
    let time = try time("2026-03-29T00:59:30Z")
    let source = source(holdingAfter: 50_000)
    let hours = try window("03:00", "06:00", "Europe/Berlin")
    let downloader = try await downloader(source, time, RateLimit(rate, during: hours))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    // Half of the file arrives at full speed.
    await source.held(atLeast: 1)
    time.advance(by: .seconds(30))
    source.release()
    await time.sleeper(dueIn: Self.pauseOfAChunk, purpose: .pace)
    time.advance(by: Self.pauseOfAChunk)
    await time.sleeper(dueIn: .seconds(1), purpose: .pace)
    // The clock is set an hour back, which the pause of the next chunk notices.
    time.jumpDate(by: .seconds(-3600))
    time.advance(by: .seconds(60))
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test("Several limits apply together, each in its hours, and can be replaced by id")
  func severalLimits() async throws {
    let time = try time("2026-06-01T07:00:00Z")
    let source = source(holdingAfter: 20_000)
    let office = try window("08:00", "18:00")
    let always = RateLimit(.bytesPerSecond(20_000))
    let downloader = try await downloader(source, time, RateLimit(rate, during: office, id: "office"), always)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    // Before the hours, only the limit without hours applies.
    for pause in [400, 500] {
      await time.sleeper(dueIn: .milliseconds(pause), purpose: .pace)
      time.advance(by: .milliseconds(pause))
    }
    await source.held(atLeast: 1)
    time.advance(by: .seconds(3600))
    source.release()
    await time.sleeper(dueIn: Self.pauseOfAChunk, purpose: .pace)
    await downloader.replace(RateLimit(rate, during: try window("20:00", "21:00"), id: "office"))
    time.advance(by: Self.pauseOfAChunk)
    await time.sleeper(dueIn: .milliseconds(400), purpose: .pace)
    await downloader.removeRatePolicy(id: "RateLimit")
    time.advance(by: .milliseconds(400))
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test("The summary states the hours")
  func summaries() throws {
    let berlin = try window("8:00", "18:00", "Europe/Berlin")
    #expect(RateLimit(.megabytesPerSecond(20), during: berlin).summary == "20.0 MB/s, 08:00–18:00 (Europe/Berlin)")
    let local = DailyWindow(from: TimeOfDay(hour: 22), to: TimeOfDay(hour: 6))
    #expect(RateLimit(rate, for: .host, during: local).summary == "10.0 KB/s from one host, 22:00–06:00")
  }
}
