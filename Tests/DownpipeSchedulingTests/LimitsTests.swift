import DownpipeCore
import DownpipeScheduling
import Testing

@Suite(.timeLimit(.minutes(5)))
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

  @Test func endingADownloadMakesRoom() {
    let limits = Limits(concurrent: 1)
    var one = running(candidate())
    one.remove(candidate())
    #expect(limits.admit(candidate(), beside: one) == .admitted)
  }
}
