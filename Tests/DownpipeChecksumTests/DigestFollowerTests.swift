import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

/// Digests that are computed while the bytes arrive.
@Suite(.endsHangs)
struct DigestFollowerTests {
  private let bytes = DownloadFixtures.pattern(size: 3 << 20)
  private let url = URL(string: "https://example.org/file.bin")!

  private func context(_ digests: [FileDigest], follower: (any TransferFollower)? = nil) throws -> ProcessingContext {
    ProcessingContext(
      request: try DownloadRequest("https://example.org/file.bin").with(\.expectedDigests, digests), workspace: nil,
      digests: digests, follower: follower)
  }

  private func follower(for digests: [FileDigest]) throws -> any TransferFollower {
    let follower = try #require(VerifyChecksum().follower(in: context(digests)))
    for start in stride(from: 0, to: bytes.count, by: 300_000) {
      try follower.take(bytes.span.bytes.extracting(start..<min(bytes.count, start + 300_000)))
    }
    return follower
  }

  @Test func theFileIsNotReadAgain() async throws {
    let digests = try [DigestAlgorithm.sha256, .md5].map { try DigestSamples.digest($0, of: bytes) }
    let absent = Artifact(location: .path("/nowhere/file"), name: "file", size: .known(Int64(bytes.count)))
    let follower = try follower(for: digests)
    #expect(try await VerifyChecksum().process(absent, in: context(digests, follower: follower)) == absent)
    let wrong = try DigestSamples.digest(.sha256, of: [1])
    await #expect(throws: DownloadError.self) {
      try await VerifyChecksum().process(absent, in: context([wrong], follower: follower))
    }
  }

  @Test func aFollowerOfOtherAlgorithmsIsNotUsed() async throws {
    let follower = try follower(for: [try DigestSamples.digest(.md5, of: bytes)])
    let artifact = Artifact(location: .memory(bytes), name: "file", size: .known(Int64(bytes.count)))
    let right = try DigestSamples.digest(.sha256, of: bytes)
    #expect(try await VerifyChecksum().process(artifact, in: context([right], follower: follower)) == artifact)
  }

  @Test func thereIsNoFollowerWithoutADigest() throws {
    #expect(try VerifyChecksum().follower(in: context([])) == nil)
    let odd = FileDigest(DigestAlgorithm("odd"), bytes: [1])
    #expect(try VerifyChecksum().follower(in: context([odd])) == nil, "the step reports the error")
  }

  @Test("a wrong digest of a large file is found", arguments: [true, false])
  func aDownload(isRight: Bool) async throws {
    let digest = try DigestSamples.digest(.sha256, of: isRight ? bytes : [1])
    let storage = FakeStorage()
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await Downloader {
      source
      storage
      FakeRetryPolicy(.giveUp)
      VerifyChecksum()
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a").with(\.expectedDigests, [digest]))
    if isRight {
      #expect(storage.bytes(of: try await download.value) == bytes)
    } else {
      let error = await #expect(throws: DownloadError.self) { try await download.value }
      #expect(error?.code == .digestMismatch)
      #expect(storage.published.isEmpty)
    }
    await downloader.shutdown()
    #expect(storage.calls.allSatisfy { $0.operation != .read }, "the bytes have arrived in order")
  }
}
