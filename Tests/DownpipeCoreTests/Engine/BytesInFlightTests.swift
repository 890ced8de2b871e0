import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Admission policies see the sizes of downloads, and the bytes in flight.
@Suite(.endsHangs)
struct BytesInFlightTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// At most 10,000 bytes are in flight; files of unknown size run one at a time.
  private func policy() -> FakeAdmissionPolicy {
    FakeAdmissionPolicy { candidate, running in
      if running.total == 0 { return .admitted }
      guard let size = candidate.size.bytes else {
        return running.unknownSizes == 0 && running.bytes < 10_000 ? .admitted : .full("of unknown size")
      }
      return size <= 10_000 - running.bytes ? .admitted : .full("\(running.bytes) bytes are in flight")
    }
  }

  private func downloader(_ source: FakeSource, _ policy: FakeAdmissionPolicy) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      policy
      storage
      ledger
    }
  }

  /// Files of these sizes, whose transfers are held after 100 bytes.
  private func source(_ sizes: [Int]) -> FakeSource {
    FakeSource(
      Dictionary(
        uniqueKeysWithValues: sizes.enumerated().map { index, size in
          (url.appending(path: "\(index)"), [.init(DownloadFixtures.pattern(size: size)).holding(after: 100)])
        }))
  }

  private func requests(_ sizes: [Int], known: Bool) -> [DownloadRequest] {
    var requests = requests(sizes.count)
    if known { for (index, size) in sizes.enumerated() { requests[index].expectedSize = ByteCount(Int64(size)) } }
    return requests
  }

  @Test("Expected sizes fill the limit in the order of the queue; a large file is not overtaken")
  func expectedSizes() async throws {
    let sizes = [4_000, 5_000, 3_000, 200]
    let (source, policy) = (source(sizes), policy())
    let downloader = try await downloader(source, policy)
    let downloads = try await downloader.add(contentsOf: requests(sizes, known: true))
    await source.held(atLeast: 2)
    try await settle(downloader)
    // Two runs that start together ask in any order.
    #expect(Set(source.requests.map(\.id)) == ["d0", "d1"])
    #expect(
      try await downloads[2].status.state
        == .waiting(.limit(id: "FakeAdmissionPolicy", text: "9000 bytes are in flight")))
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(policy.questions.allSatisfy { $0.answer != .admitted || $0.running.bytes <= 10_000 })
    await downloader.shutdown()
  }

  @Test("A size that a server states makes room for the next download, at the next tick", arguments: [1_000, 20_000])
  func learnedSizes(size: Int) async throws {
    let sizes = [size, 1_000]
    let (source, policy) = (source(sizes), policy())
    let downloader = try await downloader(source, policy)
    let downloads = try await downloader.add(contentsOf: requests(sizes, known: false))
    await source.held(atLeast: 1)
    #expect(source.requests.map(\.id) == ["d0"])
    await time.sleeper(dueIn: options.progressInterval, purpose: .progress)
    time.advance(by: options.progressInterval)
    if size < 10_000 {
      await source.held(atLeast: 2)
    } else {
      // The first file alone exceeds the limit.
      try await settle(downloader)
      #expect(source.requests.map(\.id) == ["d0"])
    }
    source.release()
    _ = try await advancing { try await downloads[1].value }
    await downloader.shutdown()
  }

  @Test("A size that was expected too small counts as what the server states, before the next start")
  func wrongHint() async throws {
    let sizes = [9_500, 1_000, 1_000]
    let (source, policy) = (source(sizes), policy())
    let downloader = try await downloader(source, policy)
    var requests = requests(sizes, known: false)
    for index in requests.indices { requests[index].sizeHint = 100 }
    try await downloader.add(requests[0])
    await source.held(atLeast: 1)
    requests[1].sizeHint = 1_000
    let second = try await downloader.add(requests[1])
    try await settle(downloader)
    #expect(source.requests.map(\.id) == ["d0"])
    #expect(
      try await second.status.state == .waiting(.limit(id: "FakeAdmissionPolicy", text: "9500 bytes are in flight")))
    source.release()
    _ = try await advancing { try await second.value }
    await downloader.shutdown()
  }

  @Test("The rules of gates do not see sizes: a closed gate holds back a whole line")
  func gates() {
    let rule = GateRule.each { $0.size == .unknown ? .open : .closed("it sees a size") }
    #expect(rule.verdict(for: Candidate(size: 5)) == .open)
    #expect(Candidate(host: "h", size: 5).withoutSize == Candidate(host: "h"))
  }
}
