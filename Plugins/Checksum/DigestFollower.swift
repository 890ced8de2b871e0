import DownpipeCore
import Synchronization

/// Computes digests of a download while its bytes arrive.
final class DigestFollower: TransferFollower {
  private let computations: Mutex<[DigestComputation]>

  /// - Throws: ``DownloadError`` with `.invalidRequest` for an algorithm that is not supported.
  init(_ algorithms: [DigestAlgorithm]) throws(DownloadError) {
    var computations: [DigestComputation] = []
    for algorithm in algorithms { computations.append(try DigestComputation(algorithm)) }
    self.computations = Mutex(computations)
  }

  func take(_ bytes: RawSpan) {
    computations.withLock { computations in
      for index in computations.indices { computations[index].update(bytes) }
    }
  }

  /// The digests of the bytes taken so far; `nil` if one of the algorithms was not computed.
  func digests(_ algorithms: [DigestAlgorithm]) -> [FileDigest]? {
    let computed = computations.withLock { $0.map { $0.finalize() } }
    let wanted = algorithms.compactMap { algorithm in computed.first { $0.algorithm == algorithm } }
    return wanted.count == algorithms.count ? wanted : nil
  }
}
