import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

/// The options that have an effect by stages of the pipeline.
@Suite(.endsHangs)
struct DownloadOptionsTests {
  private static let first = "00000000000000a1"

  private func metadata(_ options: [String: String]) -> [String: String] {
    Dictionary(uniqueKeysWithValues: options.map { (OptionKey.of($0.key), $0.value) })
  }

  // MARK: Attempts

  private let retry = Retry(.exponential(attempts: 3, base: .seconds(8)))

  private func decision(
    _ options: [String: String], _ consecutive: Int, all: [String: String] = [:]
  ) -> RetryDecision {
    var request = DownloadRequest(URL(filePath: "/file"))
    request.metadata = metadata(options)
    return OptionRetry(base: retry, settings: RPCSettings(options: all)).decide(
      Failure(error: DownloadError(.timedOut, ""), consecutive: consecutive, request: request))
  }

  @Test func withoutOptionsThePolicyDecides() {
    #expect(decision([:], 2) == .resume(after: .seconds(8)))
    #expect(decision([:], 3) == .giveUp)
  }

  @Test func clientsSayHowOftenAndAfterWhichWait() {
    #expect(decision(["max-tries": "1"], 1) == .giveUp)
    #expect(decision(["max-tries": "5"], 4) == .resume(after: .seconds(30)))
    #expect(decision(["max-tries": "5"], 5) == .giveUp)
    #expect(decision(["max-tries": "0"], 1_000_000) == .resume(after: .seconds(30)))
    #expect(decision(["retry-wait": "7"], 2) == .resume(after: .seconds(7)))
    #expect(decision(["retry-wait": "7"], 3) == .giveUp)
    let never = OptionRetry(base: Retry(.never), settings: RPCSettings(options: ["max-tries": "0"]))
    #expect(never.decide(Failure(error: DownloadError(.timedOut, ""), consecutive: 9)) == .resume(after: .seconds(30)))
    #expect(decision([:], 3, all: ["max-tries": "4", "retry-wait": "2"]) == .resume(after: .seconds(2)))
    #expect(decision(["max-tries": "2"], 3, all: ["max-tries": "4"]) == .giveUp)
  }

  // MARK: Connections

  private func policy(
    _ options: [String: String], all: [String: String] = [:], base: Segmented? = Segmented(), most: Int = 16
  ) -> Segmented? {
    OptionSegments(base: base, settings: RPCSettings(options: all), most: most).policy(metadata(options))
  }

  @Test func clientsSayOverHowManyConnections() {
    #expect(policy([:]) == Segmented())
    #expect(policy([:], base: nil) == nil)
    #expect(policy(["split": "16"]) == Segmented(connections: .automatic(upTo: 16)))
    #expect(policy(["split": "1"]) == nil)
    #expect(policy(["max-connection-per-server": "1"]) == nil)
    #expect(policy(["split": "16", "max-connection-per-server": "4"]) == Segmented(connections: 4))
    #expect(policy(["split": "3"], all: ["max-connection-per-server": "8"]) == Segmented(connections: 3))
    #expect(policy(["split": "3"], base: nil) == Segmented(connections: .automatic(upTo: 3)))
    #expect(policy(["min-split-size": "1048576"]) == Segmented(minimumSize: 2 << 20))
    #expect(policy(["min-split-size": "1048576"], base: nil) == nil)
    #expect(policy(["split": "1000000"])?.connections.maximum == 16)
    #expect(policy(["split": "9", "max-connection-per-server": "9"], most: 5) == Segmented(connections: 5))
    #expect(policy(["split": "9"], most: 1) == nil)
    #expect(policy([:], most: 2) == Segmented(connections: .automatic(upTo: 2)))
    #expect(policy([:], most: 1) == nil)
  }

  @Test func theSizeOfTheFileDecides() {
    let policy = OptionSegments(base: nil, settings: RPCSettings(), most: 16)
    let options = TransferContext(metadata: metadata(["split": "8", "min-split-size": "1048576"]))
    #expect(policy.start(size: 2 << 20, of: options)?.maximumConnections == 8)
    #expect(policy.start(size: (2 << 20) - 1, of: options) == nil)
    #expect(policy.start(size: 1 << 40, of: TransferContext()) == nil)
  }

  // MARK: From the client to the stage

  @Test("what is given reaches the stages, and what equals the values told does not")
  func given() async throws {
    let fixture = try await RPCFixture { $0.options = ["split": "4", "max-tries": "6"] }
    try await fixture.add(Self.first, ["split": "4", "max-tries": "2", "max-download-limit": "100K"])
    let request = try #require(try await fixture.request(Self.first))
    let expected = metadata(["max-tries": "2", "max-download-limit": "102400"])
    #expect(request.metadata.filter { $0.key.hasPrefix("rpc.option.") } == expected)
    let told = try await fixture.value("aria2.getOption", .string(Self.first))
    #expect(told["split"]?.text == "4")
    #expect(told["max-tries"]?.text == "2")
    #expect(told["max-download-limit"]?.text == "102400")
  }

  @Test("all options that were told can be given back, and change nothing")
  func givenBack() async throws {
    let fixture = try await RPCFixture { $0.options = ["split": "4", "max-tries": "6"] }
    try await fixture.add(Self.first)
    let told = try await fixture.value("aria2.getOption", .string(Self.first))
    let second = "00000000000000a2"
    guard case .object(var members) = told else { return #expect(Bool(false), "no object") }
    members["gid"] = .string(second)
    members["pause"] = "true"
    _ = try await fixture.value("aria2.addUri", ["https://example.org/b"], .object(members))
    let request = try #require(try await fixture.request(second))
    #expect(request.metadata.filter { $0.key.hasPrefix("rpc.option.") } == [:])
  }

  @Test("all options for all that were told can be given back, and change nothing")
  func globalGivenBack() async throws {
    let fixture = try await RPCFixture { $0.options = ["split": "4", "max-overall-download-limit": "5000000"] }
    _ = try await fixture.value("aria2.changeGlobalOption", ["max-tries": "9", "dir": "films"])
    let told = try await fixture.value("aria2.getGlobalOption")
    _ = try await fixture.value("aria2.changeGlobalOption", told)
    let kept = fixture.aria2.settings.value.options
    #expect(kept == ["max-tries": "9", "dir": "films"])
    _ = try await fixture.value(
      "aria2.changeGlobalOption", ["max-tries": "5", "dir": .string(RPCFixture.directory), "split": "8"])
    #expect(fixture.aria2.settings.value.options == ["split": "8"])
  }

  @Test("what equals the value for all follows it, and other changes do not disturb what is the download's own")
  func standards() async throws {
    let fixture = try await RPCFixture()
    _ = try await fixture.value("aria2.changeGlobalOption", ["max-download-limit": "100K"])
    let second = "00000000000000a2"
    try await fixture.add(Self.first, ["max-download-limit": "100K"])
    try await fixture.add(second, ["max-download-limit": "700K"])
    func told(_ gid: String) async throws -> String? {
      try await fixture.value("aria2.getOption", .string(gid))["max-download-limit"]?.text
    }
    _ = try await fixture.value("aria2.changeGlobalOption", ["max-download-limit": "700K"])
    #expect(try await told(Self.first) == "716800")
    for gid in [Self.first, second] {
      _ = try await fixture.value("aria2.changeOption", .string(gid), ["referer": "https://example.org/"])
    }
    _ = try await fixture.value("aria2.changeGlobalOption", ["max-download-limit": "0"])
    #expect(try await told(Self.first) == "0")
    #expect(try await told(second) == "716800")
    #expect(try await fixture.request(Self.first)?.metadata[OptionKey.of("max-download-limit")] == nil)
    #expect(try await fixture.request(second)?.metadata[OptionKey.of("max-download-limit")] == "716800")
    _ = try await fixture.value("aria2.changeGlobalOption", ["max-download-limit": "100K"])
    _ = try await fixture.value("aria2.changeOption", .string(second), ["max-download-limit": "0"])
    #expect(try await told(second) == "0")
    #expect(try await fixture.request(second)?.metadata[OptionKey.of("max-download-limit")] == "0")
  }

  @Test("a changed option reaches a download that exists, and its standard takes it back")
  func changed() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(Self.first)
    func limit() async throws -> String? {
      try await fixture.request(Self.first)?.metadata[OptionKey.of("max-download-limit")]
    }
    _ = try await fixture.value("aria2.changeOption", .string(Self.first), ["max-download-limit": "1M"])
    #expect(try await limit() == "1048576")
    _ = try await fixture.value("aria2.changeOption", .string(Self.first), ["max-download-limit": "0"])
    #expect(try await limit() == nil)
  }

  // MARK: Pieces

  private func told(
    _ ranges: [ByteRange], received: Int64? = nil, of total: ByteCount
  ) -> JSONValue {
    let stored = ByteRangeSet(ranges)
    let status = DownloadStatus(
      id: "a", request: DownloadRequest(URL(filePath: "/a")), state: .paused,
      progress: TransferProgress(received: received ?? stored.byteCount, total: total), storedRanges: stored,
      attempts: 1, resumedFrom: 0, bytesFetched: 0, name: "a", createdAt: Date(timeIntervalSince1970: 0),
      updatedAt: Date(timeIntervalSince1970: 0))
    return Aria2Status(status: status, gid: GID("a"), directory: "/srv").json(["bitfield", "numPieces", "pieceLength"])
  }

  @Test("a bit for each piece that is whole")
  func bitfield() {
    let mebibyte: Int64 = 1 << 20
    func bits(_ ranges: [ByteRange], received: Int64? = nil, of total: Int64) -> String? {
      told(ranges, received: received, of: .known(total))["bitfield"]?.text
    }
    #expect(bits([0..<(3 * mebibyte)], of: 10 * mebibyte) == "e000")
    #expect(bits([0..<(3 * mebibyte - 1)], of: 10 * mebibyte) == "c000")
    #expect(bits([(mebibyte + 1)..<(4 * mebibyte)], of: 4 * mebibyte) == "30")
    #expect(bits([0..<mebibyte, (9 * mebibyte)..<(10 * mebibyte)], of: 10 * mebibyte) == "8040")
    // The last piece is shorter.
    #expect(bits([0..<5, mebibyte..<(mebibyte + 7)], of: mebibyte + 7) == "40")
    #expect(bits([0..<mebibyte], received: 2 * mebibyte, of: 10 * mebibyte) == "c000")
    #expect(bits([], received: 0, of: 10 * mebibyte) == nil)
    #expect(told([0..<5], of: .unknown)["bitfield"] == nil)
    #expect(bits([0..<7], of: 7) == "80")
  }

  @Test(
    "pieces are larger where there would be many",
    arguments: [1 << 20, 1 << 32, (1 << 32) + 1, 1 << 50, .max] as [Int64])
  func pieces(total: Int64) throws {
    let told = told([0..<(total / 2)], of: .known(total))
    let length = try #require(told["pieceLength"]?.text.flatMap { Int64($0) })
    let count = try #require(told["numPieces"]?.text.flatMap { Int64($0) })
    #expect((1...4096).contains(count))
    #expect(Double(count) * Double(length) >= Double(total))
    #expect(told["bitfield"]?.text?.count == Int((count + 7) / 8) * 2)
  }

  @Test("the group has the stages, and the limit of each download only where clients have set one")
  func stages() throws {
    func pipeline(_ settings: RPCSettings) -> Pipeline {
      Pipeline {
        FakeSource(everyURL: FakeSource.Script([]))
        DownloadOptions(settings, retry: retry, segments: Segmented(connections: 3))
        FakeStorage()
      }
    }
    let plain = pipeline(RPCSettings())
    #expect(plain.rates.map(\.id) == ["RequestedRate"])
    #expect(plain.retry.name == "Retry")
    #expect(plain.segments?.summary.hasPrefix("3 connections") == true)
    let limited = pipeline(RPCSettings(options: ["max-download-limit": "5"]))
    #expect(limited.rates.map(\.summary) == ["“rpc.option.max-download-limit” of each request, otherwise 5 B/s"])
  }
}
