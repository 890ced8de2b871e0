import Downpipe
import Foundation

/// Where a checksum file or a signature is on a server.
struct CompanionPlace: Sendable, Hashable {
  let file: CompanionFile
  /// A URL, or the name or suffix of a file beside the download.
  let stored: String

  /// `nil` for text that is neither.
  init?(stored: String) {
    if stored.contains("://") {
      guard let url = URL(string: stored), PipelineSettings.schemes.contains(URLText(url).scheme.lowercased())
      else { return nil }
      file = .at(url)
    } else {
      file = .beside(stored)
    }
    self.stored = stored
  }
}

/// The value of an option that names a file of a server or of this machine.
enum CompanionOption {
  case remote(CompanionPlace)
  /// The path as it was typed.
  case local(String)

  init(_ text: String, _ option: String) throws(UsageError) {
    if text.contains("://") {
      let url: URL
      do { url = try GetPlan.url(text) } catch {
        throw UsageError("\(option) \(text.redactedURL.prefix(200)): \(error.message)")
      }
      guard let place = CompanionPlace(stored: url.absoluteString) else {
        throw UsageError("\(option) \(text.redactedURL.prefix(200)) is not a URL")
      }
      self = .remote(place)
    } else if text.contains("/") || text == "~" {
      self = .local(text)
    } else {
      // Any URL will do: only the name is checked.
      guard let place = CompanionPlace(stored: text), let example = URL(string: "http://host/file"),
        (try? place.file.url(beside: example)) != nil
      else {
        throw UsageError(
          "\(option): “\(text.prefix(100).escaped)” is not the name or the suffix of a file, such as SHA256SUMS or .sha256"
        )
      }
      self = .remote(place)
    }
  }

  /// Returns the bytes of a small file of this machine.
  static func read(_ text: String, atMost maximum: Int, _ option: String) throws(UsageError) -> [UInt8] {
    let path = try Folder.absolutePath(text)
    guard Folder.isRegularFile(path) else {
      throw UsageError("\(option): there is no file “\(text)”, or it is not a regular one")
    }
    let bytes: [UInt8]
    do {
      let handle = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? handle.close() }
      bytes = Array(try handle.read(upToCount: maximum + 1) ?? Data())
    } catch {
      throw UsageError("\(option): “\(text)” cannot be read: \(DownloadError(error, as: .storage).message)")
    }
    guard bytes.count <= maximum else { throw UsageError("\(option): “\(text)” has more than \(maximum) bytes") }
    return bytes
  }
}

/// A checksum file on this machine. The requests get its digests, so that no later command needs it.
struct LocalChecksums: Sendable, Hashable {
  private let path: String
  private let file: ChecksumFile

  /// - Throws: ``UsageError`` for a file that cannot be read, or is no checksum file.
  init(path: String) throws(UsageError) {
    let bytes = try CompanionOption.read(path, atMost: ChecksumFile.maximumBytes, "--checksum-file")
    do {
      file = try ChecksumFile(parsing: bytes, named: path.split(separator: "/").last.map(String.init))
    } catch {
      throw UsageError("--checksum-file: “\(path)”: \(error.message)")
    }
    self.path = path
  }

  /// Adds the digests for a name to those that a request expects.
  ///
  /// - Throws: ``DownloadError`` with `.noChecksum` when the file has none.
  func attach(to request: inout DownloadRequest, for name: String?) throws(DownloadError) {
    let digests = name.map { file.digests(for: $0) } ?? []
    guard !digests.isEmpty else {
      throw DownloadError(
        .noChecksum, "the checksum file “\(path)” has no entry for “\((name ?? "").prefix(100).escaped)”")
    }
    for digest in digests where !request.expectedDigests.contains(digest) { request.expectedDigests.append(digest) }
  }
}
