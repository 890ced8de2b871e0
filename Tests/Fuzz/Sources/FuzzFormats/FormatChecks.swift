@testable import DownpipeChecksum
@testable import DownpipeCore
@testable import DownpipeFiles
@testable import DownpipeMetalink
@testable import DownpipeSignature
import Foundation
import FuzzSupport

/// Gives inputs to a parser, and checks what it makes of them.
struct FormatChecks {
  /// The checks of this process. libFuzzer calls a function without a context.
  nonisolated(unsafe) static var current: FormatChecks?

  private let check: ([UInt8]) throws -> Void

  init(_ format: Format) {
    switch format {
    case .checksums: check = Self.checksums
    case .metalink: check = Self.metalink
    case .minisign: check = Self.signature
    case .archive:
      let archives = ArchiveChecks()
      check = { archives.run($0) }
    case .disposition: check = Self.disposition
    case .template: check = Self.template
    }
  }

  func run(_ bytes: [UInt8]) {
    do { try check(bytes) } catch let error as DownloadError {
      if error.message.isEmpty || error.message.utf8.count > 2000 { fail("a message of \(error.message.utf8.count)") }
    } catch { fail("\(type(of: error)): \(error)") }
  }

  private static func checksums(_ bytes: [UInt8]) throws {
    let names = [nil, "SHA256SUMS", "a.md5", ".sha512"]
    let sums = try ChecksumFile(parsing: bytes, named: names[bytes.count % names.count])
    if sums.entries.count > ChecksumFile.maximumLines { fail("\(sums.entries.count) entries") }
    for entry in sums.entries {
      if entry.digest.bytes.count != entry.digest.algorithm.byteCount { fail("a digest of another length") }
      guard let name = entry.name else { continue }
      if name.isEmpty || name.utf8.count > ChecksumFile.maximumNameBytes { fail("a name of \(name.utf8.count) bytes") }
      _ = try? sums.digest(for: name)
    }
  }

  private static func metalink(_ bytes: [UInt8]) throws {
    let document = try MetalinkDocument(parsing: bytes)
    if document.files.count > MetalinkDocument.maximumFiles { fail("\(document.files.count) files") }
    for file in document.files {
      if file.mirrors.count + file.metaURLs.count > MetalinkDocument.maximumURLs { fail("too many URLs") }
      if file.pieces.contains(where: { $0.digests.count > MetalinkDocument.maximumPieces || $0.length <= 0 }) {
        fail("pieces of no use")
      }
      if (file.size ?? 0) < 0 { fail("a negative size") }
      for part in file.name.split(separator: "/", omittingEmptySubsequences: false)
      where part.isEmpty || part == "." || part == ".." || part.utf8.contains(0) { fail("the name \(file.name)") }
    }
    for request in try document.requests(from: URL(string: "https://a.example/m")) {
      let destination = request.destination
      for part in [destination.name ?? ""] + (destination.directory ?? "a").split(separator: "/").map(String.init)
      where !isSafe(part) { fail("the destination \(destination)") }
      if URLText(request.url).userInfo != nil { fail("a URL with a password") }
    }
  }

  private static func signature(_ bytes: [UInt8]) throws {
    _ = try? MinisignPublicKey(parsing: String(decoding: bytes, as: UTF8.self))
    let signature = try MinisignSignature(parsing: bytes)
    if signature.signature.count != 64 || signature.globalSignature.count != 64 || signature.keyID.count != 8 {
      fail("a signature of another length")
    }
    if signature.trustedComment.contains(UInt8(ascii: "\n")) { fail("a comment of two lines") }
  }

  private static func disposition(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let name = ContentDisposition(parsing: text).fileName
    let url = URL(string: text)
    for safe in [SafeFileName.make(from: name, url: url), SafeFileName.make(fromTitle: text)] where !isSafe(safe) {
      fail("the name “\(safe)”")
    }
  }

  private static func template(_ bytes: [UInt8]) throws {
    // The text of the template, and of the values, which a server chooses.
    let parts = bytes.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false)
    let value = parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : "../../etc/passwd"
    let template = try PathTemplate(String(decoding: parts[0], as: UTF8.self))
    guard template.root.hasPrefix("/") else { fail("the root \(template.root)") }
    let request = try DownloadRequest(
      "https://a.example/\(bytes.count)", id: DownloadID("a" + value.prefix(100))
    ).with(\.metadata, ["a": value, "": value])
    for kind in [Artifact.Kind.file, .directory] {
      let artifact = Artifact(kind: kind, location: .path("/tmp/a"), name: value)
      let target = template.target(
        of: artifact, in: ProcessingContext(request: request, workspace: nil), now: Date(timeIntervalSince1970: 0))
      let folders =
        target.directory?.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false)
        .map { String($0) } ?? []
      for part in folders + [target.name]
      where part.isEmpty || part == "." || part == ".." || part.utf8.contains(0) || part.utf8.contains(0x2F)
        || part.utf8.count > 255
      { fail("the target \(target)") }
    }
  }

  /// Whether a text is a single name that every file system takes.
  private static func isSafe(_ name: String) -> Bool {
    !name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255
      && !name.unicodeScalars.contains { $0.value < 0x20 || $0 == "/" || $0 == "\\" || $0.value == 0x7F }
  }
}
