import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct RequestedRateTests {
  private let session = RequestedRate("limit").start(time: VirtualTime())

  private func transfer(_ id: DownloadID, _ limit: String? = nil) -> TransferContext {
    TransferContext(id, metadata: limit.map { ["limit": $0] } ?? [:])
  }

  @Test func eachDownloadHasTheRateOfItsRequest() {
    var (slow, fast, free) = (0, 0, 0)
    for millisecond in 0..<10_000 {
      let now = Duration.milliseconds(millisecond)
      func receive(_ transfer: TransferContext) -> Int {
        guard session.pause(after: 0, of: transfer, at: now) == .zero else { return 0 }
        _ = session.pause(after: 1_000, of: transfer, at: now)
        return 1_000
      }
      slow += receive(transfer("slow", "10000"))
      fast += receive(transfer("fast", "100000"))
      free += receive(transfer("free"))
    }
    #expect(abs(slow - 100_000) <= 5_000)
    #expect(abs(fast - 1_000_000) <= 50_000)
    #expect(free == 10_000_000)
  }

  @Test("0, no number and no value mean no limit", arguments: ["0", "-5", "fast", "", "1e3", nil])
  func unlimited(limit: String?) {
    #expect(session.pause(after: 1 << 30, of: transfer("a", limit), at: .zero) == .zero)
    #expect(!session.limits(transfer("a", limit)))
    #expect(session.limits(transfer("a", "1")))
  }

  @Test func anotherRateTakesEffectAtOnce() {
    #expect(session.pause(after: 1_000_000, of: transfer("a", "10"), at: .zero) > .seconds(90_000))
    #expect(session.pause(after: 0, of: transfer("a", "1000000"), at: .seconds(1)) == .zero)
    #expect(session.pause(after: 1_000_000, of: transfer("a", "1000000"), at: .seconds(1)) == .milliseconds(900))
    #expect(session.pause(after: 0, of: transfer("a"), at: .seconds(1)) == .zero)
  }

  @Test("a rate of its own goes before that of the policy, also a higher one and none")
  func standard() {
    let session = RequestedRate("limit", otherwise: .bytesPerSecond(1_000)).start(time: VirtualTime())
    #expect(session.pause(after: 10_000, of: transfer("a"), at: .zero) == .milliseconds(9_900))
    #expect(session.pause(after: 10_000, of: transfer("b", "10000"), at: .zero) == .milliseconds(900))
    #expect(session.pause(after: 10_000, of: transfer("c", "0"), at: .zero) == .zero)
    #expect(session.limits(transfer("a")))
    #expect(!session.limits(transfer("c", "0")))
    #expect(
      RequestedRate("limit", otherwise: .kilobytesPerSecond(1)).summary
        == "“limit” of each request, otherwise 1.00 KB/s")
  }

  @Test func itIsPrintedWithItsKey() {
    #expect(RequestedRate("limit").summary == "“limit” of each request")
    #expect(RequestedRate("limit").name == "RequestedRate")
  }
}
