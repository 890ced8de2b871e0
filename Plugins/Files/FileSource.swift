public import DownpipeCore
import DownpipePOSIX
public import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A source for files of this machine, by `file:` URLs (RFC 8089). It replies as a server does, with ranges, sizes and
/// validators.
///
/// The entity tag consists of device, inode, size and modification time in nanoseconds. If a file changes while it is
/// read, the transfer fails with `.contentChanged`; if it becomes shorter, with `.lengthMismatch`.
public struct FileSource: Source, SourceSession {
  /// The number of bytes in a chunk.
  static let chunkSize = 256 << 10

  let system: FileSystem

  /// Creates the source, which has no settings.
  public init() { self.init(system: .system) }

  init(system: FileSystem) { self.system = system }

  /// Whether the URL's scheme is `file`.
  public func accepts(_ url: URL) -> Bool { url.scheme?.caseInsensitivelyEquals("file") ?? false }

  /// Opens the file.
  ///
  /// If the request has a range and a strong validator, and the file has changed, the reply is the whole file, as for
  /// `If-Range` (RFC 9110 §13.1.5). If the request has a condition that the file meets, the reply has no bytes.
  /// - Throws: `DownloadError` with `.fileNotFound`, `.permission` or `.storage`; `.unsupportedURL` for another host, a
  ///   folder, a FIFO or a device; `.invalidRequest` for an empty range.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    let path = try path(of: request.url)
    let file: ReadableFile
    do {
      file = try ReadableFile(path, system: system)
    } catch  where error.code == ENOENT {
      throw DownloadError(.fileNotFound, "the file \(path) does not exist: check the URL", cause: error)
    } catch {
      throw error.downloadError("open", path)
    }
    let status = file.status
    guard status.kind == .file else {
      throw DownloadError(
        .unsupportedURL,
        "\(path) is \(status.kind == .folder ? "a folder" : "a device or a FIFO"): use the URL of a file")
    }
    let validator = Validator(
      entityTag: status.entityTag,
      lastModified: Date(timeIntervalSince1970: TimeInterval(status.modified.seconds)), responseDate: Date())
    var reply = SourceReply(
      coverage: .whole, length: .known(status.size), validator: validator,
      suggestedName: PathText.split(path).name, finalURL: request.url, acceptsRanges: true, body: .empty)
    if request.range == nil, request.condition?.isUnmodified(in: validator) == true {
      (reply.coverage, reply.length) = (.none(.notModified), .unknown)
      return reply
    }
    let range = isCurrent(request.validator, validator) ? request.range : nil
    if let bytes = try reply.serve(range, of: status.size) { reply.body = file.body(bytes, request.pace) }
    return reply
  }

  private func isCurrent(_ asked: Validator?, _ present: Validator) -> Bool {
    guard let asked, asked.ifRange != nil else { return true }
    return asked.compare(to: present) == .sameStrong
  }

  private func path(of url: URL) throws(DownloadError) -> String {
    let host = url.host(percentEncoded: false) ?? ""
    guard host.isEmpty || host.caseInsensitivelyEquals("localhost") else {
      throw DownloadError(.unsupportedURL, "the file is on the host “\(host)”: only files of this machine can be read")
    }
    let path = url.path(percentEncoded: false)
    // Foundation returns nothing for escapes that are not UTF-8.
    guard !path.isEmpty || url.path(percentEncoded: true).isEmpty else {
      throw DownloadError(
        .unsupportedURL, "the path of the URL is not UTF-8: link to the file under another name, and use that")
    }
    guard path.hasPrefix("/"), !path.utf8.contains(0), !url.path(percentEncoded: true).contains("%00") else {
      throw DownloadError(.unsupportedURL, "the URL has no absolute path: use file:///folder/file")
    }
    return path
  }
}

extension FileStatus {
  /// A strong entity tag: it differs for another file, and after a change of the file.
  fileprivate var entityTag: EntityTag {
    func hex(_ number: UInt64) -> String { String(number, radix: 16) }
    let time = "\(hex(UInt64(bitPattern: modified.seconds))).\(hex(UInt64(bitPattern: modified.nanoseconds)))"
    return EntityTag("\(hex(device))-\(hex(inode))-\(hex(UInt64(bitPattern: size)))-\(time)")
  }
}

/// The file of one reply.
private struct ReadableFile: Sendable {
  let path: String
  let status: FileStatus
  private let file: OpenFile

  init(_ path: String, system: FileSystem) throws(SystemError) {
    self.path = path
    file = try OpenFile(reading: path, system: system)
    status = try file.status()
  }

  func body(_ range: ByteRange, _ pace: TransferPace) -> Body {
    Body { [self] sink in
      try await BlockingThreads.run { [self] cancellation in
        try reporting("read", path) { try push(range, pace, cancellation, sink) }
      }
    }
  }

  private func push(
    _ range: ByteRange, _ pace: TransferPace, _ cancellation: BlockingThreads.Cancellation, _ sink: ChunkSink
  ) throws {
    let count = try file.forEachBlock(of: FileSource.chunkSize, in: range) { block, _ in
      try cancellation.check()
      try sink(block)
      var pause = pace.pause(after: block.byteCount)
      while pause > .zero {
        cancellation.sleep(for: pause)
        try cancellation.check()
        pause = pace.pause(after: 0)
      }
      return true
    }
    guard count == Int64(range.count) else {
      throw DownloadError(
        .lengthMismatch,
        "\(path) shrank to \(range.lowerBound + count) bytes while it was read: start the download again")
    }
    guard try file.status().entityTag == status.entityTag else {
      throw DownloadError(.contentChanged, "\(path) changed while it was read: start the download again")
    }
  }
}
