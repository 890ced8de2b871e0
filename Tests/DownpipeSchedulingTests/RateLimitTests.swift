import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct RateLimitTests {
  private let here = Candidate(host: "example.org")
  private let there = Candidate(host: "other.org")

  /// Transfers that receive chunks as fast as their pace permits, for a time.
  ///
  /// - Returns: The bytes of each transfer.
  private func transfer(
    _ candidates: [Candidate], with limit: RateLimit, chunk: Int, for time: Duration
  ) -> [Int] {
    let session = limit.start(time: VirtualTime())
    var bytes = candidates.map { _ in 0 }
    var free = candidates.map { _ in Duration.zero }
    var now = Duration.zero
    while now < time {
      for (index, candidate) in candidates.enumerated() {
        while free[index] <= now, bytes[index] < 100_000_000 {
          bytes[index] += chunk
          let pause = session.pause(after: chunk, of: TransferContext(DownloadID("\(index)"), candidate), at: now)
          if pause > .zero { free[index] = now + pause }
        }
      }
      now += .milliseconds(1)
    }
    return bytes
  }

  @Test(
    "the average over five seconds is within five percent", arguments: [1_000, 16_384, 65_536], [100_000, 2_000_000])
  func average(chunk: Int, rate: Int64) {
    let bytes = transfer([here], with: RateLimit(.bytesPerSecond(rate)), chunk: chunk, for: .seconds(5))
    let expected = Double(rate) * 5
    #expect(abs(Double(bytes[0]) - expected) <= max(expected * 0.05, Double(chunk)))
  }

  @Test func downloadsShareARate() {
    let bytes = transfer(
      [here, there, here, there], with: RateLimit(.megabytesPerSecond(1)), chunk: 16_384, for: .seconds(5))
    let total = bytes.reduce(0, +)
    #expect(abs(Double(total) - 5e6) <= 0.05 * 5e6)
    for count in bytes { #expect(abs(Double(count) - 1.25e6) <= 0.2 * 1.25e6) }
  }

  @Test func hostsAndDownloadsHaveRatesOfTheirOwn() {
    let hosts = transfer(
      [here, there, here], with: RateLimit(.megabytesPerSecond(1), for: .host), chunk: 16_384, for: .seconds(5))
    #expect(abs(Double(hosts[0] + hosts[2]) - 5e6) <= 0.05 * 5e6)
    #expect(abs(Double(hosts[1]) - 5e6) <= 0.05 * 5e6)
    let each = transfer(
      [here, here], with: RateLimit(.megabytesPerSecond(1), for: .download), chunk: 16_384, for: .seconds(5))
    for count in each { #expect(abs(Double(count) - 5e6) <= 0.05 * 5e6) }
  }

  @Test func anIdleTimeIsNotSavedUp() {
    let session = RateLimit(.bytesPerSecond(1_000)).start(time: VirtualTime())
    #expect(session.pause(after: 100, of: TransferContext("a", here), at: .seconds(100)) == .zero)
    #expect(session.pause(after: 1_000, of: TransferContext("a", here), at: .seconds(100)) == .seconds(1))
    #expect(session.pause(after: 0, of: TransferContext("a", here), at: .milliseconds(100_400)) == .milliseconds(600))
    #expect(session.pause(after: 0, of: TransferContext("a", here), at: .seconds(101)) == .zero)
  }

  @Test func summariesAndRates() {
    #expect(RateLimit(.megabytesPerSecond(20)).summary == "20.0 MB/s")
    #expect(RateLimit(.kilobytesPerSecond(1.5), for: .host).summary == "1.50 KB/s from one host")
    #expect(ByteRate.bytesPerSecond(-4).bytesPerSecond == 1)
    #expect(ByteRate.mebibytesPerSecond(.infinity).bytesPerSecond == .max)
    #expect(ByteRate.megabytesPerSecond(.nan).bytesPerSecond == 1)
    #expect(ByteRate.kilobytesPerSecond(1) < .mebibytesPerSecond(1))
  }
}
