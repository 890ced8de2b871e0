import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

/// Digests of pieces.
@Suite(.endsHangs)
struct VerifyPiecesTests {
  private static let bytes = DownloadFixtures.pattern(size: 1_050)

  private func pieces(_ algorithm: DigestAlgorithm = .sha256, length: Int64 = 100) async throws -> PieceDigests {
    try await withFile(Self.bytes) { try await PieceDigests.of(file: $0, algorithm: algorithm, length: length) }
  }

  private func damaged(at offsets: Int...) -> [UInt8] {
    var bytes = Self.bytes
    for offset in offsets { bytes[offset] ^= 1 }
    return bytes
  }

  /// Runs the step on a file and on bytes in memory, with and without a follower, and expects the same result.
  private func failure(
    _ pieces: PieceDigests?, _ bytes: [UInt8], expected: [FileDigest] = [], _ step: VerifyChecksum = VerifyChecksum()
  ) async throws -> DownloadError? {
    var request = try DownloadRequest("https://example.org/file").with(\.expectedDigests, expected)
    request.pieces = pieces
    let context = ProcessingContext(request: request, workspace: nil, digests: expected)
    #expect(step.isNeeded(in: context))
    return try await withFile(bytes) { path in
      var errors: [DownloadError?] = []
      for location in [Artifact.Location.path(path), .memory(bytes)] {
        for follows in [false, true] {
          let follower = follows ? step.follower(in: context) : nil
          // In parts that do not end where pieces end.
          for start in stride(from: 0, to: bytes.count, by: 333) {
            try follower?.take(bytes[start..<min(bytes.count, start + 333)].span.bytes)
          }
          let context = ProcessingContext(request: request, workspace: nil, digests: expected, follower: follower)
          let artifact = Artifact(location: location, name: "file", size: .known(Int64(bytes.count)), mediaType: nil)
          do {
            #expect(try await step.process(artifact, in: context) == artifact)
            errors.append(nil)
          } catch let error as DownloadError {
            errors.append(error)
          }
        }
      }
      #expect(errors.allSatisfy { $0 == errors[0] && $0?.wrongBytes == errors[0]?.wrongBytes }, "\(errors)")
      return errors[0]
    }
  }

  @Test("wrong pieces are named by their bytes", arguments: DigestComputation.supportedAlgorithms)
  func wrongPieces(_ algorithm: DigestAlgorithm) async throws {
    let pieces = try await pieces(algorithm)
    #expect(pieces.count == 11 && pieces.fit(1_050) && pieces.fit(1_001) && !pieces.fit(1_000) && !pieces.fit(1_101))
    #expect(try await failure(pieces, Self.bytes) == nil)
    let error = try await failure(pieces, damaged(at: 100, 199, 350, 1_049))
    #expect(error?.code == .pieceMismatch)
    var wrong = ByteRangeSet(100..<200)
    wrong.insert(contentsOf: 300..<400)
    wrong.insert(contentsOf: 1_000..<1_050)
    #expect(error?.wrongBytes == wrong)
    #expect(error?.message.contains("3 of 11 pieces") == true, "\(String(describing: error))")
  }

  @Test("the pieces of a file that its digest proves are not checked, and those of a wrong one are")
  func withDigests() async throws {
    let right = try DigestSamples.digest(.sha256, of: Self.bytes)
    let weak = try DigestSamples.digest(.md5, of: damaged(at: 5))
    let others = try #require(PieceDigests(.sha256, length: 100, bytes: [UInt8](repeating: 1, count: 11 * 32)))
    #expect(try await failure(others, Self.bytes, expected: [right]) == nil)
    #expect(try await failure(pieces(), damaged(at: 5), expected: [right])?.code == .pieceMismatch)
    #expect(try await failure(pieces(), damaged(at: 5), expected: [weak])?.code == .pieceMismatch)
    let contradiction = try await failure(pieces(), Self.bytes, expected: [weak])
    #expect(contradiction?.code == .digestMismatch && contradiction?.message.contains("contradict") == true)
  }

  @Test("a digest that is not the request's does not replace the pieces")
  func digestsOfTheServer() async throws {
    let bytes = damaged(at: 5)
    var request = try DownloadRequest("https://example.org/file")
    request.pieces = try await pieces()
    let sent = [try DigestSamples.digest(.sha256, of: bytes)]
    let step = VerifyChecksum()
    let question = ProcessingContext(request: request, workspace: nil, digests: sent)
    for follows in [false, true] {
      let follower = follows ? step.follower(in: question) : nil
      try follower?.take(bytes.span.bytes)
      let context = ProcessingContext(request: request, workspace: nil, digests: sent, follower: follower)
      let artifact = Artifact(location: .memory(bytes), name: "file", size: .known(Int64(bytes.count)), mediaType: nil)
      let error = await #expect(throws: DownloadError.self) { try await step.process(artifact, in: context) }
      #expect(error?.code == .pieceMismatch && error?.wrongBytes == ByteRangeSet(0..<100))
    }
  }

  @Test("no more digests are computed than the file should have")
  func bounds() throws {
    var computation = try PieceComputation(.crc32, length: 1, atMost: 3)
    for _ in 0..<4 { computation.update([UInt8](repeating: 1, count: 1 << 20).span.bytes) }
    #expect(computation.digests.count == 4)
  }

  @Test("a file of which more than half is wrong, or of another size, is another version")
  func otherVersions() async throws {
    let pieces = try await pieces()
    #expect(try await failure(pieces, Self.bytes.reversed())?.code == .digestMismatch)
    #expect(try await failure(pieces, Array(Self.bytes.dropLast(100)))?.code == .digestMismatch)
    #expect(try await failure(pieces, Self.bytes + Self.bytes)?.code == .digestMismatch)
    #expect(try await failure(pieces, [])?.code == .digestMismatch)
    #expect(try await failure(pieces, Array(Self.bytes.dropLast()))?.code == .pieceMismatch)
  }

  @Test("a step that requires a digest is satisfied with pieces")
  func required() async throws {
    let step = VerifyChecksum(.sha256, required: true)
    #expect(try await failure(pieces(), Self.bytes, step) == nil)
    #expect(try await failure(pieces(.md5), Self.bytes, step)?.code == .processing)
  }

  @Test("digests that cannot be those of pieces are refused")
  func limits() async throws {
    #expect(PieceDigests(.sha256, length: 100, bytes: [1, 2, 3]) == nil)
    #expect(PieceDigests(.sha256, length: 100, bytes: []) == nil)
    #expect(PieceDigests(DigestAlgorithm("other"), length: 100, bytes: [1]) == nil)
    for length: Int64 in [0, -1, PieceDigests.maximumLength + 1, .max] {
      #expect(PieceDigests(.crc32, length: length, bytes: [1, 2, 3, 4]) == nil)
    }
    let most = [UInt8](repeating: 0, count: 4 * PieceDigests.maximumCount)
    #expect(PieceDigests(.crc32, length: 1, bytes: most)?.count == PieceDigests.maximumCount)
    #expect(PieceDigests(.crc32, length: 1, bytes: most + [0, 0, 0, 0]) == nil)
    let pieces = try await pieces()
    #expect(PieceDigests(.sha256, length: 100, digests: (0..<pieces.count).map { pieces.digest(at: $0) }) == pieces)
    #expect(PieceDigests(.sha384, length: 100, digests: [pieces.digest(at: 0)]) == nil)
    let data = try JSONEncoder().encode(pieces)
    #expect(try JSONDecoder().decode(PieceDigests.self, from: data) == pieces)
    let wrong = String(decoding: data, as: UTF8.self).replacing("100", with: "0")
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(PieceDigests.self, from: Data(wrong.utf8)) }
    try await withFile([]) { path in
      _ = await #expect(throws: DownloadError.self) { try await PieceDigests.of(file: path) }
    }
  }
}
