import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

@Suite(.endsHangs)
struct DigestComputationTests {
  @Test("published vectors", arguments: DigestSamples.vectors)
  func vectors(_ algorithm: DigestAlgorithm, _ bytes: [UInt8], _ hex: String) throws {
    #expect(try DigestSamples.digest(algorithm, of: bytes).hex == hex)
    #expect(try DigestSamples.digest(algorithm, of: bytes).algorithm == algorithm)
  }

  @Test("published long vectors, in chunks of any size", arguments: DigestSamples.longVectors)
  func longVectors(_ algorithm: DigestAlgorithm, _ hex: String) throws {
    for size in [1_000_000, 65_537, 63, 1] {
      var computation = try DigestComputation(algorithm)
      DigestSamples.update(&computation, with: DigestSamples.millionA, chunk: size)
      #expect(computation.finalize().hex == hex, "chunks of \(size)")
    }
  }

  @Test("a copy continues independently, and finalizing changes nothing")
  func value() throws {
    for algorithm in DigestComputation.supportedAlgorithms {
      var first = try DigestComputation(algorithm)
      DigestSamples.update(&first, with: DigestSamples.abc)
      var second = first
      DigestSamples.update(&second, with: DigestSamples.abc)
      #expect(try first.finalize() == DigestSamples.digest(algorithm, of: DigestSamples.abc))
      #expect(first.finalize() == first.finalize())
      #expect(try second.finalize() == DigestSamples.digest(algorithm, of: DigestSamples.abc + DigestSamples.abc))
    }
  }

  @Test("every supported algorithm has the length of its digests")
  func lengths() throws {
    for algorithm in DigestComputation.supportedAlgorithms {
      #expect(try DigestSamples.digest(algorithm, of: []).bytes.count == algorithm.byteCount)
    }
    #expect(DigestComputation.supportedAlgorithms.count >= 5)
  }

  @Test("an unknown algorithm is refused, and the message lists the supported ones")
  func unknown() {
    let error = #expect(throws: DownloadError.self) { try DigestComputation(DigestAlgorithm("unixsum")) }
    #expect(error?.code == .invalidRequest)
    #expect(error?.message.contains("unixsum") == true)
    #expect(error?.message.contains("sha-256, sha-384, sha-512, sha-1, md5") == true)
  }

  @Test("several digests of a file are computed in one pass")
  func file() async throws {
    let bytes = (0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    try await withFile(bytes) { path in
      let all = DigestComputation.supportedAlgorithms
      let digests = try await FileDigest.of(file: path, algorithms: all)
      #expect(digests == (try all.map { try DigestSamples.digest($0, of: bytes) }))
      #expect(try await FileDigest.of(file: path, algorithm: .md5) == DigestSamples.digest(.md5, of: bytes))
      #expect(try await FileDigest.of(file: path, algorithms: []) == [])
    }
  }

  @Test(
    "a path that cannot be read is a DownloadError", arguments: [("/missing/file", "storage"), ("/", "processing")])
  func unreadable(_ path: String, _ code: String) async {
    let error = await #expect(throws: DownloadError.self) { try await FileDigest.of(file: path, algorithm: .sha256) }
    #expect(error?.code.rawValue == code)
  }

  @Test("a cancelled task computes nothing")
  func cancelled() async throws {
    try await withFile(DigestSamples.millionA) { path in
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await FileDigest.of(file: path, algorithm: .sha256)
      }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }
}
