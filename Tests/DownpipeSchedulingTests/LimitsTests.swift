import DownpipeCore
import DownpipeScheduling
import HangLimit
import Testing

@Suite(.endsHangs)
struct LimitsTests {
  private func candidate(host: String = "example.org", tags: Set<String> = []) -> Candidate {
    Candidate(host: host, tags: tags)
  }

  private func running(_ candidates: Candidate...) -> RunningDownloads {
    var running = RunningDownloads()
    for candidate in candidates { running.insert(candidate) }
    return running
  }

  @Test func defaultsToFiveInAll() {
    let limits = Limits()
    #expect(limits.maximumConcurrent == 5)
    #expect(limits.maximumPerHost == nil)
    #expect(limits.summary == "5 at once")
    #expect(limits.admit(candidate(), beside: RunningDownloads()) == .admitted)
  }

  @Test func saysWhichLimitIsReached() {
    let limits = Limits(concurrent: 3, perHost: 2, perTag: ["video": 1])
    #expect(limits.summary == "3 at once, 2 from one host, 1 tagged video")
    let two = running(candidate(), candidate(tags: ["video"]))
    #expect(limits.admit(candidate(), beside: two) == .hostFull("2 of 2 downloads from example.org are running"))
    #expect(limits.admit(candidate(host: "other.org"), beside: two) == .admitted)
    #expect(
      limits.admit(candidate(host: "other.org", tags: ["audio", "video"]), beside: two)
        == .refused("1 of 1 download tagged “video” is running"))
    let three = running(candidate(), candidate(), candidate(host: "other.org"))
    #expect(limits.admit(candidate(host: "third.org"), beside: three) == .full("3 of 3 downloads are running"))
  }

  @Test func portsAreHostsOfTheirOwn() {
    let limits = Limits(perHost: 1)
    let one = running(candidate(host: "example.org:8080"))
    #expect(limits.admit(candidate(), beside: one) == .admitted)
    #expect(
      limits.admit(candidate(host: "example.org:8080"), beside: one)
        == .hostFull("1 of 1 download from example.org:8080 is running"))
  }

  @Test func localFilesHaveNoHost() {
    let limits = Limits(concurrent: 3, perHost: 1)
    let two = running(candidate(host: ""), candidate(host: ""))
    #expect(limits.admit(candidate(host: ""), beside: two) == .admitted)
  }

  @Test func labelsWithoutALimitAreFree() {
    let limits = Limits(concurrent: 10, perTag: ["video": 2])
    let some = running(candidate(tags: ["audio"]), candidate(tags: ["audio", "video"]))
    #expect(limits.admit(candidate(tags: ["audio", "video"]), beside: some) == .admitted)
  }

  @Test func ofSeveralLabelsTheFirstInTheAlphabetIsNamed() {
    let limits = Limits(concurrent: 10, perTag: ["b": 1, "a": 1, "c": 1])
    let one = running(candidate(tags: ["a", "b", "c"]))
    for _ in 0..<10 {
      #expect(
        limits.admit(candidate(tags: ["c", "b", "a"]), beside: one)
          == .refused("1 of 1 download tagged “a” is running"))
    }
  }

  @Test(arguments: [0, -1, Int.min])
  func limitsBelowOneCountAsOne(limit: Int) {
    let limits = Limits(concurrent: limit, perHost: limit, perTag: ["a": limit])
    #expect(limits == Limits(concurrent: 1, perHost: 1, perTag: ["a": 1]))
    #expect(limits.admit(candidate(tags: ["a"]), beside: RunningDownloads()) == .admitted)
    #expect(limits.admit(candidate(), beside: running(candidate())) == .full("1 of 1 download is running"))
  }

  @Test func aLimitThatWasLoweredHoldsBackTheNext() {
    let three = running(candidate(), candidate(), candidate())
    #expect(Limits(concurrent: 2).admit(candidate(), beside: three) == .full("3 of 2 downloads are running"))
    #expect(Limits(concurrent: .max).admit(candidate(), beside: three) == .admitted)
  }

  @Test("The bytes in flight: known sizes fill the limit, unknown ones run one at a time")
  func bytesInFlight() {
    let limits = Limits(concurrent: 10, bytesInFlight: 2_000_000_000)
    #expect(limits.summary == "10 at once, 2.00 GB in flight")
    func sized(_ size: ByteCount) -> Candidate { Candidate(host: "example.org", size: size) }
    let one = running(sized(1_500_000_000))
    #expect(one.bytes == 1_500_000_000)
    #expect(limits.admit(sized(500_000_000), beside: one) == .admitted)
    #expect(
      limits.admit(sized(500_000_001), beside: one)
        == .full("1.50 GB of 2.00 GB are in flight: no room for 500 MB"))
    #expect(limits.admit(sized(.unknown), beside: one) == .admitted)
    var two = one
    two.insert(sized(.unknown))
    #expect(two.bytes == 1_500_000_000)
    #expect(two.unknownSizes == 1)
    #expect(limits.admit(sized(.unknown), beside: two) == .full("a download of unknown size is running: one at a time"))
    #expect(limits.admit(sized(0), beside: two) == .admitted)
    two.remove(sized(.unknown))
    #expect(two == one)
  }

  @Test("A file that is larger than the limit of bytes runs alone", arguments: [2_000, .max] as [Int64])
  func largerThanTheLimit(size: Int64) {
    let limits = Limits(concurrent: 10, bytesInFlight: 1_000)
    let large = Candidate(size: ByteCount(size))
    #expect(limits.admit(large, beside: RunningDownloads()) == .admitted)
    #expect(limits.admit(large, beside: running(Candidate(size: 0))) != .admitted)
    #expect(limits.admit(Candidate(size: 1), beside: running(large)) != .admitted)
    #expect(limits.admit(Candidate(), beside: running(large)) != .admitted)
    // Sums beyond 64 bits are subtracted exactly.
    var many = running(large, large, large)
    many.remove(large)
    many.remove(large)
    #expect(many.bytes == size)
    #expect(Limits(bytesInFlight: -1) == Limits(bytesInFlight: 1))
  }

  @Test func endingADownloadMakesRoom() {
    let limits = Limits(concurrent: 1)
    var one = running(candidate())
    one.remove(candidate())
    #expect(limits.admit(candidate(), beside: one) == .admitted)
  }
}
