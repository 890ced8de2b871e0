import DownpipeCore
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
  func digests(of pieces: PieceDigests) -> [FileDigest]? {
    guard let computation = state.withLock({ $0.pieces }), computation.algorithm == pieces.algorithm,
      computation.length == pieces.length
    else { return nil }
    return computation.digests
  }
}
