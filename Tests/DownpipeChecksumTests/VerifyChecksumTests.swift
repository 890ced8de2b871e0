import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

@Suite(.endsHangs)
struct VerifyChecksumTests {
  static let bytes = Array("the bytes that were meant".utf8)

  /// Runs the step on a file and on the same bytes in memory, and expects the same result.
  ///
  /// - Returns: the error; `nil` when the artifact passed unchanged.
  func failure(
    _ step: VerifyChecksum, expected: [FileDigest] = [], promised: [FileDigest] = [], bytes: [UInt8] = bytes
  ) async throws -> DownloadError? {
    let context = ProcessingContext(
      request: try DownloadRequest("https://example.org/file").with(\.expectedDigests, expected), workspace: nil,
      digests: expected + promised)
    return try await withFile(bytes) { path in
      var errors: [DownloadError?] = []
      for location in [Artifact.Location.path(path), .memory(bytes)] {
        let artifact = Artifact(location: location, name: "file", size: .unknown, mediaType: "text/plain")
        do {
          let result = try await step.process(artifact, in: context)
          #expect(result == artifact)
          errors.append(nil)
        } catch let error as DownloadError {
          errors.append(error)
        }
      }
      #expect(errors[0] == errors[1])
      return errors[0]
    }
  }

  func right(_ algorithm: DigestAlgorithm) throws -> FileDigest { try DigestSamples.digest(algorithm, of: Self.bytes) }
  func wrong(_ algorithm: DigestAlgorithm) throws -> FileDigest { try DigestSamples.digest(algorithm, of: [1]) }

  @Test(
    "a correct digest passes, from the request and from the server", arguments: DigestComputation.supportedAlgorithms)
  func matches(_ algorithm: DigestAlgorithm) async throws {
    #expect(try await failure(VerifyChecksum(), expected: [right(algorithm)]) == nil)
    #expect(try await failure(VerifyChecksum(), promised: [right(algorithm)]) == nil)
  }

  @Test("a wrong digest fails, and the message has both", arguments: DigestComputation.supportedAlgorithms)
  func mismatch(_ algorithm: DigestAlgorithm) async throws {
    let expected = try #require(try await failure(VerifyChecksum(), expected: [wrong(algorithm)]))
    #expect(expected.code == .digestMismatch)
    for part in [algorithm.name, try wrong(algorithm).hex, try right(algorithm).hex, "the request expects"] {
      #expect(expected.message.contains(part))
    }
    let promised = try #require(try await failure(VerifyChecksum(), promised: [wrong(algorithm)]))
    #expect(promised.code == .digestMismatch)
    #expect(promised.message.contains("the server sent"))
  }

  @Test("several digests must all match")
  func several() async throws {
    let all = try DigestComputation.supportedAlgorithms.map(right)
    #expect(try await failure(VerifyChecksum(), expected: all) == nil)
    for index in all.indices {
      var one = all
      one[index] = try wrong(all[index].algorithm)
      #expect(try await failure(VerifyChecksum(), expected: one)?.code == .digestMismatch)
      #expect(try await failure(VerifyChecksum(), promised: one)?.code == .digestMismatch)
    }
    // Two different digests of one algorithm cannot both match.
    let both = [try right(.sha256), try wrong(.sha256)]
    #expect(try await failure(VerifyChecksum(), expected: both)?.code == .digestMismatch)
    #expect(try await failure(VerifyChecksum(), expected: [both[0]], promised: [both[1]])?.code == .digestMismatch)
  }

  @Test("a changed byte is detected, at both ends and at the border of two blocks")
  func changedByte() async throws {
    let bytes = [UInt8](repeating: 7, count: (1 << 20) + 1)
    let digest = try DigestSamples.digest(.sha256, of: bytes)
    #expect(try await failure(VerifyChecksum(), expected: [digest], bytes: bytes) == nil)
    for index in [0, (1 << 20) - 1, 1 << 20] {
      var changed = bytes
      changed[index] = 8
      #expect(try await failure(VerifyChecksum(), expected: [digest], bytes: changed)?.code == .digestMismatch)
    }
  }

  @Test("an empty file has a digest")
  func empty() async throws {
    let digest = try DigestSamples.digest(.sha256, of: [])
    #expect(try await failure(VerifyChecksum(required: true), expected: [digest], bytes: []) == nil)
    #expect(try await failure(VerifyChecksum(), expected: [wrong(.sha256)], bytes: [])?.code == .digestMismatch)
  }

  @Test("a digest that cannot be checked is an error in the request, and ignored from the server")
  func uncheckable() async throws {
    let unknown = FileDigest(DigestAlgorithm("unixsum"), bytes: [1, 2])
    let short = FileDigest(.sha256, bytes: [1, 2])
    for digest in [unknown, short] {
      let error = try #require(try await failure(VerifyChecksum(), expected: [digest, right(.sha256)]))
      #expect(error.code == .invalidRequest)
      #expect(try await failure(VerifyChecksum(), promised: [digest]) == nil)
      #expect(try await failure(VerifyChecksum(required: true), promised: [digest])?.code == .processing)
    }
    let error = try #require(try await failure(VerifyChecksum(), expected: [unknown]))
    #expect(error.message.contains("unixsum") && error.message.contains("sha-256, sha-384"))
  }

  @Test("a missing digest is an error if one is required")
  func required() async throws {
    let any = VerifyChecksum(required: true)
    let strong = VerifyChecksum(.sha256, .sha512, required: true)
    #expect(try await failure(VerifyChecksum()) == nil)
    #expect(try await failure(any)?.code == .processing)
    #expect(try await failure(any, promised: [right(.md5)]) == nil)
    #expect(try await failure(strong)?.code == .processing)
    #expect(try await failure(strong, expected: [right(.md5)])?.code == .processing)
    #expect(try await failure(strong, promised: [right(.sha512)]) == nil)
    #expect(try await failure(strong, expected: [right(.sha256)]) == nil)
    #expect(try await failure(strong, expected: [wrong(.sha256)])?.code == .digestMismatch)
    let unknown = VerifyChecksum(DigestAlgorithm("unixsum"), required: true)
    #expect(try await failure(unknown, expected: [right(.sha256)])?.code == .invalidPipeline)
  }

  @Test("named algorithms select digests of the server, not of the request")
  func named() async throws {
    let step = VerifyChecksum(.sha256, required: false)
    #expect(try await failure(step, promised: [wrong(.md5)]) == nil)
    #expect(try await failure(step, promised: [wrong(.sha256)])?.code == .digestMismatch)
    #expect(try await failure(step, expected: [wrong(.md5)])?.code == .digestMismatch)
  }

  @Test("a folder is an error, with and without a digest")
  func folder() async throws {
    let artifact = Artifact(kind: .directory, location: .path("/"), name: "folder")
    for digests in [[], [try right(.sha256)]] {
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/file").with(\.expectedDigests, digests), workspace: nil,
        digests: digests)
      let error = await #expect(throws: DownloadError.self) {
        try await VerifyChecksum().process(artifact, in: context)
      }
      #expect(error?.code == .processing)
    }
  }

  @Test("a missing file is a storage error, but only with a digest to check")
  func missing() async throws {
    let artifact = Artifact(location: .path("/missing/file"), name: "file")
    let request = try DownloadRequest("https://example.org/file")
    let nothing = ProcessingContext(request: request, workspace: nil)
    #expect(try await VerifyChecksum().process(artifact, in: nothing) == artifact)
    let something = ProcessingContext(request: request, workspace: nil, digests: [try right(.sha256)])
    let error = await #expect(throws: DownloadError.self) {
      try await VerifyChecksum().process(artifact, in: something)
    }
    #expect(error?.code == .storage)
  }

  @Test("a cancelled task checks nothing", arguments: [true, false])
  func cancelled(_ inMemory: Bool) async throws {
    try await withFile(Self.bytes) { path in
      let artifact = Artifact(location: inMemory ? .memory(Self.bytes) : .path(path), name: "file")
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/file"), workspace: nil, digests: [try right(.sha256)])
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await VerifyChecksum().process(artifact, in: context)
      }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test("the summary names the required algorithms")
  func summary() {
    #expect(VerifyChecksum().summary == "")
    #expect(VerifyChecksum(required: true).summary == "required")
    #expect(VerifyChecksum(.sha256, .sha512, required: true).summary == "sha-256 or sha-512 required")
    #expect(VerifyChecksum(.sha256, required: false).summary == "sha-256")
  }
}
