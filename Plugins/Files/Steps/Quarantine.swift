public import DownpipeCore
import DownpipePOSIX
import Foundation

/// A step that records where the file comes from, in the extended attributes that browsers, `curl --xattr` and `wget
/// --xattr` use on Linux.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   Quarantine()
/// }
/// ```
/// - `user.xdg.origin.url` is the URL of the request.
/// - `user.xdg.referrer.url` is the `Referer` of the request, if it has one.
///
/// Both are written without user information, query and fragment: all readers of the file can read them, and signed
/// links have their secrets there. URLs without a host, and those of more than 2,048 bytes, are not written.
///
/// File systems without extended attributes, or without room for them, lose nothing else: this is no error, and many
/// copying programs drop the attributes, too. `MoveInto` to another file system copies the bytes only, so put this step
/// after it there. On Apple platforms the same attributes are written. The mark `com.apple.quarantine`, by which
/// Gatekeeper asks before a program is opened first, is not: the system sets it for apps that ask for it
/// (`LSFileQuarantineEnabled`).
///
/// A file in memory stays as it is, and so does one that was there before the download
/// (``/DownpipeCore/Artifact/isReused``).
public struct Quarantine: PostProcessor {
  /// The most bytes of a URL that is written.
  private static let maximumLength = 2048

  let system: FileSystem

  /// Creates a step that records the origin of files.
  public init() { self.init(system: .system) }

  init(system: FileSystem) { self.system = system }

  /// What is recorded.
  public var summary: String { "origin and referrer" }

  /// The step does not change the bytes.
  public var keepsContent: Bool { true }

  /// Writes the attributes.
  ///
  /// - Throws: `DownloadError` with `.storage` if the file is missing or was changed since it was published;
  ///   `.permission`; `CancellationError` when the task is cancelled before.
  public func process(_ input: File, in context: ProcessingContext) async throws -> File {
    try Task.checkCancellation()
    guard let opened = try ArtifactFile.open(input.artifact, system) else { return input }
    let referrer = context.request.headers["Referer"].flatMap { URL(string: $0) }
    let attributes = [("user.xdg.origin.url", context.request.url), ("user.xdg.referrer.url", referrer)]
    _ = try opened.change("record the origin of", context.durability) { descriptor throws(SystemError) in
      for (name, url) in attributes {
        guard let value = url.flatMap(Self.value) else { continue }
        guard try system.setAttribute(descriptor, name, value) else { return }
      }
    }
    return input
  }

  /// A URL without its secrets, as far as they are not in its path; `nil` for one that is not written.
  private static func value(_ url: URL) -> [UInt8]? {
    guard !url.hostKey.isEmpty else { return nil }
    let bytes = Array(url.resourceKey.utf8)
    return bytes.count <= maximumLength ? bytes : nil
  }
}
