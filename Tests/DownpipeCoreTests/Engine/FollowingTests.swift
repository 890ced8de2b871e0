import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Steps whose followers take the bytes while they arrive.
@Suite(.endsHangs)
struct FollowingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 5 << 20)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private static let mebibyte = 1 << 20
  private let cut = DownloadError(.network, "cut")

  private func script(_ bytes: [UInt8]) -> FakeSource.Script {
    FakeSource.Script(bytes).with { $0.chunkSize = 100_000 }
  }

  private func downloader(
    _ source: FakeSource, _ steps: [FollowingStep], retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp)
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      storage
      ledger
      retry
      for step in steps { step }
    }
  }

  /// A download whose source holds after some bytes, and whose follower has taken bytes.
  private struct Held {
    let source: FakeSource
    let downloader: Downloader
    let download: Download
    let follower: FollowerRecorder
  }

  private func held(after held: Int, taken: Int, by step: FollowingStep) async throws -> Held {
    let source = FakeSource([url: [script(bytes).holding(after: held)]])
    let downloader = try await downloader(source, [step])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let follower = try await step.follower()
    await follower.taken(atLeast: taken)
    return Held(source: source, downloader: downloader, download: download, follower: follower)
  }

  @Test func bytesAreTakenWhileTheyArrive() async throws {
    let step = FollowingStep()
    let held = try await held(after: 3 * Self.mebibyte, taken: 2 * Self.mebibyte, by: step)
    #expect(step.results.isEmpty, "the transfer has not ended")
    held.source.release()
    #expect(storage.bytes(of: try await held.download.value) == bytes)
    #expect(step.results == [bytes])
    #expect(step.followers.count == 1)
    await held.downloader.shutdown()
  }

  @Test func aSmallFileIsReadByItsStep() async throws {
    let small = Array(bytes.prefix(Self.mebibyte))
    let step = FollowingStep()
    let downloader = try await downloader(FakeSource([url: [script(small)]]), [step])
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(step.contexts.isEmpty)
    #expect(step.results == [nil])
    await downloader.shutdown()
  }

  @Test("a follower begins with byte 0 of a resumed file, with and without a length", arguments: [true, false])
  func aResumedFile(announcesLength: Bool) async throws {
    let script = script(bytes).with { $0.announcesLength = announcesLength }
    let source = FakeSource([url: [script.failing(after: 3 * Self.mebibyte, with: cut), script]])
    let step = FollowingStep()
    let downloader = try await downloader(source, [step], retry: FakeRetryPolicy(.resume(after: .zero)))
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range != nil)
    #expect(step.results == [bytes])
    #expect(step.followers.count == 2, "one for each run")
    await downloader.shutdown()
  }

  @Test func aFileInSeveralRepliesIsFollowedThrough() async throws {
    let whole = script(bytes)
    // The rest in two replies: the server sends less than is asked for.
    let (first, second) = (3 * Self.mebibyte, 4 * Self.mebibyte)
    let parts = [(first - 1000)..<second, (second - 1000)..<bytes.count].map { range in
      script(Array(bytes[range])).with {
        $0.validator = whole.validator
        $0.honoursRanges = false
        $0.claimedCoverage = .range(Int64(range.lowerBound)..<Int64(range.upperBound), total: .known(5 << 20))
      }
    }
    let source = FakeSource([url: [whole.failing(after: first, with: cut)] + parts])
    let step = FollowingStep()
    let downloader = try await downloader(source, [step], retry: FakeRetryPolicy(.resume(after: .zero)))
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 3)
    #expect(step.results == [bytes])
    #expect(step.followers.count == 2, "one for each run")
    await downloader.shutdown()
  }

  @Test("bytes that were replaced after they were taken are read by the step", arguments: [0, 1, 3_500_000])
  func replacedBytes(firstDifference: Int) async throws {
    var other = bytes
    other[firstDifference] ^= 1
    let bare: @Sendable (inout FakeSource.Script) -> Void = {
      $0.honoursRanges = false
      $0.validator = nil
    }
    let source = FakeSource([
      url: [
        script(bytes).with(bare).failing(after: 4 * Self.mebibyte, with: cut),
        // The hold is before the first byte is compared.
        script(other).with(bare).holding(after: 0),
      ]
    ])
    let step = FollowingStep()
    let restarting = FakeRetryPolicy {
      $0.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero)
    }
    let downloader = try await downloader(source, [step], retry: restarting)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let follower = try await step.follower(1)
    await follower.taken(atLeast: 4 * Self.mebibyte)
    source.release()
    #expect(storage.bytes(of: try await download.value) == other)
    // The body is refused, also without a range, and the policy restarts: nothing that was taken before counts.
    #expect(source.requests.count == 4)
    #expect(step.results.count == 1 && step.results.first != .some(nil))
    await downloader.shutdown()
  }

  @Test func aFollowerThatThrowsIsDropped() async throws {
    let step = FollowingStep { FollowerRecorder(limit: Self.mebibyte) }
    let other = FollowingStep(name: "Other")
    let downloader = try await downloader(FakeSource([url: [script(bytes)]]), [step, other])
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(step.results == [nil])
    #expect(other.results == [bytes], "the other one gets all bytes")
    #expect(try #require(step.followers.first).bytes.count < bytes.count)
    await downloader.shutdown()
  }

  @Test func aSlowFollowerTakesTheRestAfterTheTransfer() async throws {
    let step = FollowingStep { FollowerRecorder(isBlocked: true) }
    let held = try await held(after: 3 * Self.mebibyte, taken: 1, by: step)
    held.source.release()
    // The transport does not wait for the follower.
    while held.source.readers > 0 { await Task.yield() }
    #expect(held.follower.bytes.count <= Self.mebibyte)
    held.follower.unblock()
    _ = try await held.download.value
    #expect(step.results == [bytes])
    await held.downloader.shutdown()
  }

  @Test func cancellingEndsTheFollowing() async throws {
    let step = FollowingStep { FollowerRecorder(isBlocked: true) }
    let held = try await held(after: 4 * Self.mebibyte, taken: 1, by: step)
    let cancelling = Task { try await held.download.cancel() }
    while held.source.readers > 0 { await Task.yield() }
    held.follower.unblock()
    _ = try await cancelling.value
    await #expect(throws: DownloadError.self) { try await held.download.value }
    await held.downloader.shutdown()
    #expect(held.follower.bytes.count <= Self.mebibyte, "it was cancelled between two blocks")
    #expect(step.results.isEmpty)
    #expect(storage.openPartials == 0)
  }

  @Test func aPartialThatCannotBeReadIsNotFollowed() async throws {
    storage.fail(.read, times: .max, with: DownloadError(.storage, "bad sector"))
    // While it is blocked, more bytes arrive than are kept in memory.
    let step = FollowingStep { FollowerRecorder(isBlocked: true) }
    let held = try await held(after: 3 * Self.mebibyte, taken: 1, by: step)
    held.source.release()
    while held.source.readers > 0 { await Task.yield() }
    held.follower.unblock()
    #expect(storage.bytes(of: try await held.download.value) == bytes)
    #expect(step.results == [nil])
    await held.downloader.shutdown()
  }

  @Test func onlyStepsThatTakeTheDownloadedBytesAreAsked() async throws {
    let (first, last) = (FollowingStep(name: "First"), FollowingStep(name: "Last"))
    let downloader = try await Downloader(options: options) {
      FakeSource([url: [script(bytes)]])
      storage
      ledger
      FollowingStep(name: "Skipped").when { _ in false }
      first.when { _ in true }
      FakePostProcessor<File, File>.bytes(name: "Reverse") { $0.reversed() }
      last
    }
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(first.results == [bytes])
    #expect(last.contexts.isEmpty)
    #expect(last.results == [nil])
    await downloader.shutdown()
  }

  @Test func aFollowerKnowsTheDigestsThatTheServerSent() async throws {
    let digest = FileDigest(.sha256, bytes: [UInt8](repeating: 1, count: 32))
    let source = FakeSource([url: [script(bytes).with { $0.digests = [digest] }]])
    let step = FollowingStep()
    let downloader = try await downloader(source, [step])
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(step.contexts.map(\.digests) == [[digest]])
    #expect(step.results == [bytes])
    await downloader.shutdown()
  }
}
