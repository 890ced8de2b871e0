import DownpipeCore
import DownpipePOSIX
import Synchronization

/// Computes digests of a download, and of its pieces, while its bytes arrive.
final class DigestFollower: TransferFollower {
  private struct State {
    var computations: [DigestComputation]
    var pieces: PieceComputation?
  }

  private let state: Mutex<State>

  /// - Throws: ``DownloadError`` with `.invalidRequest` for an algorithm that is not supported.
  init(_ algorithms: [DigestAlgorithm], pieces: PieceDigests? = nil) throws(DownloadError) {
    var computations: [DigestComputation] = []
    for algorithm in algorithms { computations.append(try DigestComputation(algorithm)) }
    var computation: PieceComputation?
    if let pieces { computation = try PieceComputation(pieces.algorithm, length: pieces.length, atMost: pieces.count) }
    state = Mutex(State(computations: computations, pieces: computation))
  }

  /// A follower for the pieces only.
  init(pieces: PieceComputation) { state = Mutex(State(computations: [], pieces: pieces)) }

  func take(_ bytes: RawSpan) {
    state.withLock { state in
      for index in state.computations.indices { state.computations[index].update(bytes) }
      state.pieces?.update(bytes)
    }
  }

  /// The digests of the bytes taken so far; `nil` if one of the algorithms was not computed.
  func digests(_ algorithms: [DigestAlgorithm]) -> [FileDigest]? {
    let computed = state.withLock { $0.computations.map { $0.finalize() } }
    let wanted = algorithms.compactMap { algorithm in computed.first { $0.algorithm == algorithm } }
    return wanted.count == algorithms.count ? wanted : nil
  }

  /// The digests of the pieces taken so far; `nil` if those of such pieces were not computed.
  func digests(ofPieces algorithm: DigestAlgorithm, length: Int64) -> [FileDigest]? {
    guard let computation = state.withLock({ $0.pieces }), computation.algorithm == algorithm,
      computation.length == length
    else { return nil }
    return computation.digests
  }

  /// Takes all bytes of a file, as if they arrived now.
  func read(_ artifact: Artifact, in context: ProcessingContext) throws {
    try Task.checkCancellation()
    let progress = InputProgress(of: artifact, in: context)
    try ArtifactBytes(artifact, didRead: progress.didRead).forEachBlock { block in
      try Task.checkCancellation()
      take(block)
      return true
    }
  }
}
