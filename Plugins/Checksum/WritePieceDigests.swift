public import DownpipeCore
import DownpipePOSIX
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A step that writes the digests of the file's pieces into a small file beside it, for those who fetch, verify or repair
/// the file later.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   VerifyChecksum()
///   MoveInto("/srv/films")
///   try WritePieceDigests()                            // /srv/films/film.mkv.pieces
/// }
/// ```
/// The file is a ``/DownpipeCore/PieceDigests`` in JSON, from which a request gets its pieces:
///
/// ```swift
/// var copy = try DownloadRequest("https://mirror.example/film.mkv")
/// copy.pieces = try JSONDecoder().decode(
///   PieceDigests.self, from: Data(contentsOf: URL(filePath: "/srv/films/film.mkv.pieces")))
/// ```
///
/// The digests are those of the bytes that the step takes: put it before steps that change the bytes, since the pieces of
/// a request are those of the file as it is downloaded. With a folder of your choice, and only `VerifyChecksum` and other
/// steps that follow the transfer before it, they are computed while the bytes arrive; after `MoveInto` the file is read once.
///
/// **Where it is written.** Into the folder of the file, which is known after `MoveInto`, or into a folder of your choice.
/// There it has the name of the file as far as that is known before the file is published: use a folder only where names are
/// unique. It appears at once and complete, and replaces digests that are there. Another file with its name stays,
/// and is an error. For an empty file, which has no pieces, nothing is written; nor for a file that was there before the
/// download (``/DownpipeCore/Artifact/isReused``).
public struct WritePieceDigests: PostProcessor {
  /// The most bytes of a file that is replaced: what the most pieces of the longest digests have in JSON.
  private static let maximumBytes: Int64 = 8 << 20

  /// The algorithm of the digests.
  public let algorithm: DigestAlgorithm
  /// The bytes of a piece; chosen by the size of the file when `nil`.
  public let length: Int64?
  /// The folder for the digests; that of the file when `nil`.
  public let folder: String?
  /// What is added to the name of the file.
  public let suffix: String
  let system: FileSystem

  /// Creates a step that writes digests of pieces.
  ///
  /// - Parameters:
  ///   - algorithm: The algorithm of the digests.
  ///   - length: The bytes of a piece, from 1 to ``/DownpipeCore/PieceDigests/maximumLength``; by default 1 MiB, and more for
  ///     files with more than ``/DownpipeCore/PieceDigests/maximumCount`` pieces of that length.
  ///   - folder: An existing folder; `~` is the home directory. By default that of the file.
  ///   - suffix: What is added to the name of the file.
  /// - Throws: `DownloadError` with `.invalidPipeline` for an unsupported algorithm, a length that is out of bounds, and a
  ///   suffix that is empty or has a slash.
  public init(
    _ algorithm: DigestAlgorithm = .sha256, length: Int64? = nil, into folder: String? = nil, suffix: String = ".pieces"
  ) throws(DownloadError) {
    try self.init(algorithm, length: length, into: folder, suffix: suffix, system: .system)
  }

  init(
    _ algorithm: DigestAlgorithm, length: Int64?, into folder: String?, suffix: String, system: FileSystem
  ) throws(DownloadError) {
    guard DigestComputation.supportedAlgorithms.contains(algorithm) else {
      throw DownloadError(
        .invalidPipeline,
        "WritePieceDigests: the algorithm “\(algorithm.name.prefix(64))” is not supported: use one of "
          + DigestComputation.supportedNames)
    }
    if let length, !(1...PieceDigests.maximumLength).contains(length) {
      throw DownloadError(
        .invalidPipeline,
        "WritePieceDigests: a piece has from 1 to \(PieceDigests.maximumLength) bytes, not \(length)")
    }
    guard !suffix.isEmpty, !suffix.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }) else {
      throw DownloadError(
        .invalidPipeline, "WritePieceDigests: the suffix is empty or has a slash: use one like .pieces")
    }
    self.algorithm = algorithm
    self.length = length
    self.folder = folder.map(PathText.absolute)
    self.suffix = suffix
    self.system = system
  }

  /// The algorithm, and the length of the pieces if it was chosen.
  public var summary: String { length.map { "\(algorithm) of \($0) bytes each" } ?? "\(algorithm)" }

  /// The step does not change the bytes.
  public var keepsContent: Bool { true }

  /// Returns a follower that computes the digests while the bytes arrive; `nil` if their length depends on an unknown size.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    guard let length = length ?? context.bytesReceived.map(PieceDigests.usualLength(forBytes:)) else { return nil }
    return try? DigestFollower(pieces: computation(length))
  }

  /// Writes the digests.
  ///
  /// - Throws: `DownloadError` with `.alreadyExists` if another file has the name of the digests; `.invalidPipeline` if the
  ///   file has no folder yet and none was chosen; `.invalidRequest` for a file with too many pieces of the chosen length;
  ///   `.noSpace`, `.permission` or `.storage`; `CancellationError`.
  public func process(_ input: File, in context: ProcessingContext) async throws -> File {
    let artifact = input.artifact
    if artifact.isReused { return input }
    let (place, name) = try target(of: artifact, context.request)
    let length = length ?? PieceDigests.usualLength(forBytes: artifact.size.bytes ?? 0)
    var digests = (context.follower as? DigestFollower)?.digests(ofPieces: algorithm, length: length)
    if digests == nil {
      let follower = DigestFollower(pieces: try computation(length))
      try follower.read(artifact, in: context)
      digests = follower.digests(ofPieces: algorithm, length: length)
    }
    try Task.checkCancellation()
    let pieces = try PieceDigests.pieces(algorithm, length: length, digests ?? [], of: "“\(artifact.name)”")
    let path = PathText.join(place, name)
    do {
      try write(pieces, as: name, in: place, for: context)
    } catch let error as SystemError {
      throw error.downloadError("write", path)
    }
    return input
  }

  private func computation(_ length: Int64) throws(DownloadError) -> PieceComputation {
    try PieceComputation(algorithm, length: length, atMost: PieceDigests.maximumCount)
  }

  /// The folder and the name of the digests.
  private func target(of artifact: Artifact, _ request: DownloadRequest) throws(DownloadError) -> (
    folder: String, name: String
  ) {
    // A file with a time is where it stays.
    if artifact.modifiedAt != nil, let path = artifact.path {
      let (own, name) = PathText.split(path)
      return (folder ?? own, name + suffix)
    }
    guard let folder else {
      throw DownloadError(
        .invalidPipeline,
        "the file is not in its folder yet: put WritePieceDigests after MoveInto, or give it a folder (into:)")
    }
    return (folder, (request.destination.finalName ?? artifact.name) + suffix)
  }

  private func write(
    _ pieces: PieceDigests?, as name: String, in place: String, for context: ProcessingContext
  ) throws {
    let folder = try OpenFolder(place, system: system)
    let target = folder.entry(name)
    if try system.statusIfPresent(target) != nil {
      try checkIsReplaceable(target, at: PathText.join(place, name))
      if pieces == nil { try system.unlink(target) }
    }
    guard let pieces else { return }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let bytes = [UInt8](try encoder.encode(pieces))
    // A name of its own for each download: a run that was killed leaves it for the next one.
    let hidden = folder.entry(".\(try Self.key(of: context.request.id))\(suffix.prefix(40))")
    do {
      let file = try system.makeRoom(at: hidden) { () throws(SystemError) in
        try OpenFile(hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, system: system)
      }
      try file.write(bytes.span.bytes, at: 0)
      if context.durability == .power { try file.flush() }
      try file.close()
      try system.rename(hidden, to: target)
      try folder.flush(context.durability)
    } catch {
      try? system.unlink(hidden)
      throw error
    }
  }

  private static func key(of id: DownloadID) throws -> String {
    var computation = try DigestComputation(.sha256)
    computation.update(Array(id.rawValue.utf8).span.bytes)
    return String(computation.finalize().hex.prefix(32))
  }

  /// Throws unless the entry is a file with digests of pieces.
  private func checkIsReplaceable(_ entry: Entry, at path: String) throws {
    let taken = DownloadError(
      .alreadyExists, "\(path) exists already and has no digests of pieces: rename it, or choose another suffix")
    let file: OpenFile
    // A FIFO would block, and a symbolic link leads to another file.
    do { file = try OpenFile(entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, system: system) } catch { throw taken }
    let status = try file.status()
    guard status.kind == .file, status.size <= Self.maximumBytes else { throw taken }
    let bytes = try file.read(Int(status.size), at: 0)
    guard (try? JSONDecoder().decode(PieceDigests.self, from: Data(bytes))) != nil else { throw taken }
  }
}
