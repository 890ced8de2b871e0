public import DownpipeCore
import DownpipePOSIX

/// Reads a file once from its start and computes all requested digests, and those of its pieces.
struct FileDigests: ~Copyable {
  /// The number of bytes in a block: 1 MiB.
  private static let blockSize = 1 << 20

  private let path: String
  private let file: OpenFile
  private let block: UnsafeMutableRawBufferPointer
  private var offset: Int64 = 0
  private var computations: [DigestComputation]
  /// The digests of the pieces so far, if they are computed.
  private(set) var pieces: PieceComputation?

  /// Opens a file.
  ///
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an algorithm that is not supported, `.processing` if the
  ///   path is not a regular file, `.permission` or `.storage`.
  init(of path: String, _ algorithms: [DigestAlgorithm], pieces: PieceComputation? = nil) throws {
    let computations = try algorithms.map { try DigestComputation($0) }
    let (file, status) = try reporting("open", path) { () throws(SystemError) in
      let file = try OpenFile(reading: path)
      return (file, try file.status())
    }
    // Reading a FIFO or a device could block.
    guard status.kind == .file else {
      throw DownloadError(.processing, "\(path) is not a regular file: only files have digests")
    }
    self.path = path
    self.file = file
    self.computations = computations
    self.pieces = pieces
    block = .allocate(byteCount: Self.blockSize, alignment: 64)
  }

  deinit { block.deallocate() }

  /// Reads one more block.
  ///
  /// - Returns: False at the end of the file.
  /// - Throws: `CancellationError`; ``DownloadError`` with `.storage` when the file cannot be read.
  mutating func readBlock() throws -> Bool {
    try Task.checkCancellation()
    let count: Int
    do { count = try file.read(into: block, at: offset) } catch { throw error.downloadError("read", path) }
    guard count > 0 else { return false }
    offset += Int64(count)
    let bytes = UnsafeRawBufferPointer(rebasing: block[..<count]).bytes
    for index in computations.indices { computations[index].update(bytes) }
    pieces?.update(bytes)
    return true
  }

  /// The digests of the bytes read so far, in the order of the algorithms.
  var digests: [FileDigest] { computations.map { $0.finalize() } }
}

extension FileDigest {
  /// Computes the digest of a file.
  ///
  /// ```swift
  /// let digest = try await FileDigest.of(file: "/srv/film.mkv", algorithm: .sha256)
  /// ```
  ///
  /// Reads 1 MiB at a time, outside of the caller's actor.
  /// - Throws: `DownloadError` with `.invalidRequest` for an algorithm that is not in
  ///   ``DigestComputation/supportedAlgorithms``, `.processing` if the path is not a regular file, `.permission` or
  ///   `.storage` if the file cannot be read; `CancellationError` when the task is cancelled.
  @concurrent
  public static func of(file path: String, algorithm: DigestAlgorithm) async throws -> FileDigest {
    let computation = try DigestComputation(algorithm)
    return try await of(file: path, algorithms: [algorithm]).first ?? computation.finalize()
  }

  /// Computes several digests of a file, which is read once, in the order of `algorithms`.
  ///
  /// See ``of(file:algorithm:)`` for the errors.
  @concurrent
  public static func of(file path: String, algorithms: [DigestAlgorithm]) async throws -> [FileDigest] {
    var file = try FileDigests(of: path, algorithms)
    // Lets other tasks run on this thread between two blocks.
    while try file.readBlock() { await Task.yield() }
    return file.digests
  }
}

extension PieceDigests {
  /// Computes the digests of the pieces of a file, for ``/DownpipeCore/DownloadRequest/pieces`` of its downloads.
  ///
  /// ```swift
  /// let pieces = try await PieceDigests.of(file: "/srv/film.mkv")
  /// try JSONEncoder().encode(pieces).write(to: URL(filePath: "/srv/film.mkv.pieces"))
  /// ```
  ///
  /// Reads 1 MiB at a time, outside of the caller's actor.
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - algorithm: The algorithm of the digests.
  ///   - length: The bytes of a piece, from 1 to ``/DownpipeCore/PieceDigests/maximumLength``; 1 MiB by default, and more for
  ///     files with more than ``/DownpipeCore/PieceDigests/maximumCount`` pieces of that length.
  /// - Throws: The errors of ``FileDigest/of(file:algorithm:)``; `.invalidRequest` for an empty file, which has no pieces,
  ///   and for a length that is out of bounds or gives too many pieces.
  @concurrent
  public static func of(
    file path: String, algorithm: DigestAlgorithm = .sha256, length: Int64? = nil
  ) async throws -> PieceDigests {
    let piece = try length ?? usualLength(forBytes: OpenFile.size(ofFile: path))
    guard (1...maximumLength).contains(piece) else {
      throw DownloadError(.invalidRequest, "a piece has from 1 to \(maximumLength) bytes, not \(piece)")
    }
    var file = try FileDigests(
      of: path, [], pieces: try PieceComputation(algorithm, length: piece, atMost: maximumCount))
    while try file.readBlock() { await Task.yield() }
    guard let pieces = try pieces(algorithm, length: piece, file.pieces?.digests ?? [], of: path) else {
      throw DownloadError(.invalidRequest, "\(path) is empty: it has no pieces")
    }
    return pieces
  }

  /// The length of the pieces of a file for which no length was chosen: 1 MiB, and more for a file with too many of them.
  static func usualLength(forBytes size: Int64) -> Int64 {
    var length: Int64 = 1 << 20
    while length < maximumLength, size > Int64(maximumCount) * length { length *= 2 }
    return length
  }

  /// The digests of the pieces of a file; `nil` for an empty file.
  ///
  /// - Throws: ``DownloadError`` with `.invalidRequest` if there are too many.
  static func pieces(
    _ algorithm: DigestAlgorithm, length: Int64, _ digests: [FileDigest], of file: String
  ) throws(DownloadError) -> PieceDigests? {
    if digests.isEmpty { return nil }
    guard let pieces = PieceDigests(algorithm, length: length, digests: digests) else {
      throw DownloadError(
        .invalidRequest,
        "\(file) has more than \(maximumCount) pieces of \(length) bytes, which is the most: use longer ones")
    }
    return pieces
  }
}

extension OpenFile {
  /// The size of a file.
  fileprivate static func size(ofFile path: String) throws -> Int64 {
    try reporting("open", path) { () throws(SystemError) in try OpenFile(reading: path).status().size }
  }
}
