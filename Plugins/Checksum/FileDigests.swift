public import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Reads a file once, from its beginning to its end, and computes every digest that is wanted on the way.
struct FileDigests: ~Copyable {
  /// Reads are this long: 1 MiB.
  static let blockSize = 1 << 20

  private let path: String
  private let descriptor: Int32
  private let block: UnsafeMutableRawBufferPointer
  private var computations: [DigestComputation]

  /// Opens a file.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an algorithm that cannot be computed, `.processing`
  ///   for what is no file, `.permission` or `.storage`.
  init(of path: String, _ algorithms: [DigestAlgorithm]) throws(DownloadError) {
    var computations: [DigestComputation] = []
    for algorithm in algorithms { computations.append(try DigestComputation(algorithm)) }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw Self.failure("open", path, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let code = errno
      _ = close(descriptor)
      throw Self.failure("examine", path, code)
    }
    // A pipe or a device could block for ever.
    guard status.st_mode & S_IFMT == S_IFREG else {
      _ = close(descriptor)
      throw DownloadError(.processing, "“\(path)” is no regular file, so it has no digest")
    }
    self.path = path
    self.descriptor = descriptor
    self.computations = computations
    block = .allocate(byteCount: Self.blockSize, alignment: 64)
  }

  deinit {
    block.deallocate()
    // Nothing was written, so closing has nothing to report.
    _ = close(descriptor)
  }

  /// Takes one more block.
  /// - Returns: false at the end of the file.
  /// - Throws: `CancellationError`; ``DownloadError`` with `.storage` when the file cannot be read.
  mutating func readBlock() throws -> Bool {
    try Task.checkCancellation()
    var count: Int
    repeat { count = read(descriptor, block.baseAddress, block.count) } while count < 0 && errno == EINTR
    guard count >= 0 else { throw Self.failure("read", path, errno) }
    guard count > 0 else { return false }
    let bytes = UnsafeRawBufferPointer(rebasing: block[..<count]).bytes
    for index in computations.indices { computations[index].update(bytes) }
    return true
  }

  /// The digests of all that was read, in the order of the algorithms.
  var digests: [FileDigest] { computations.map { $0.finalize() } }

  private static func failure(_ action: String, _ path: String, _ code: Int32) -> DownloadError {
    let reason = String(cString: strerror(code))
    let kind: DownloadError.Code =
      switch code {
      case EACCES, EPERM: .permission
      case EMFILE, ENFILE: .tooManyOpenFiles
      default: .storage
      }
    return DownloadError(kind, "cannot \(action) “\(path)”: \(reason)")
  }
}

extension FileDigest {
  /// The digest of a file.
  ///
  /// ```swift
  /// let digest = try await FileDigest.of(file: "/srv/film.mkv", algorithm: .sha256)
  /// ```
  ///
  /// Reads 1 MiB at a time, away from the caller's actor. Cancelling the task ends it.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an algorithm that cannot be computed (see
  ///   ``DigestComputation/supportedAlgorithms``), `.processing` for what is no regular file, `.permission` or
  ///   `.storage` for a file that cannot be read; `CancellationError`.
  @concurrent
  public static func of(file path: String, algorithm: DigestAlgorithm) async throws -> FileDigest {
    let computation = try DigestComputation(algorithm)
    return try await of(file: path, algorithms: [algorithm]).first ?? computation.finalize()
  }

  /// Several digests of a file, which is read only once; in the order of `algorithms`.
  ///
  /// Otherwise as ``of(file:algorithm:)``.
  @concurrent
  public static func of(file path: String, algorithms: [DigestAlgorithm]) async throws -> [FileDigest] {
    var file = try FileDigests(of: path, algorithms)
    // Others get their turn on this thread between two blocks.
    while try file.readBlock() { await Task.yield() }
    return file.digests
  }
}
