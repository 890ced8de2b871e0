import DownpipeCore
import Foundation

extension VerifyChecksum {
  /// Fetches the checksum file and returns its digests for the download; empty without a checksum file.
  func publishedDigests(in context: ProcessingContext) async throws -> [FileDigest] {
    guard let file else { return [] }
    let url = try file.url(beside: context.request.url)
    guard let name = entry ?? CompanionFile.fileName(of: context.request.url) else {
      throw DownloadError(
        .noChecksum,
        "the URL of the download does not end with a file name to look up in the checksum file: give VerifyChecksum the "
          + "name of the entry")
    }
    let bytes = try await fetch(file, at: url, in: context)
    do {
      return try digests(for: name, in: bytes, of: file, at: url, context)
    } catch {
      // The copy of another download may be older than this one.
      let again = try await fetch(file, at: url, in: context)
      guard again != bytes else { throw error }
      return try digests(for: name, in: again, of: file, at: url, context)
    }
  }

  /// Fetches the checksum file. A second call brings a copy that the server was asked for by then; see
  /// ``/DownpipeCore/ProcessingContext/fetch(_:maximumBytes:isNamedByUser:)``.
  private func fetch(_ file: CompanionFile, at url: URL, in context: ProcessingContext) async throws -> [UInt8] {
    do {
      return try await context.fetch(file, maximumBytes: ChecksumFile.maximumBytes)
    } catch let error as DownloadError {
      throw Self.missing(error, at: url)
    }
  }

  private func digests(
    for name: String, in bytes: [UInt8], of file: CompanionFile, at url: URL, _ context: ProcessingContext
  ) throws(DownloadError) -> [FileDigest] {
    let sums: ChecksumFile
    do {
      sums = try parsed.file(of: bytes, named: Self.statement(file, context))
    } catch {
      throw error.located(stage: nil, url: url, attempt: nil)
    }
    let digests = sums.digests(for: name)
    guard !digests.isEmpty else {
      throw DownloadError(.noChecksum, "the checksum file has no entry for “\(name.prefix(100).escaped)”")
        .located(stage: nil, url: url, attempt: nil)
    }
    return digests
  }

  /// The text that may state the algorithm: the suffix or name of the checksum file.
  static func statement(_ file: CompanionFile, _ context: ProcessingContext) -> String {
    file.name ?? (try? file.url(beside: context.request.url)).flatMap(CompanionFile.fileName(of:)) ?? ""
  }

  /// An error that says that there is no checksum file, if the server says so for good; otherwise the error itself, for
  /// the retry policy.
  private static func missing(_ error: DownloadError, at url: URL) -> DownloadError {
    guard error.code == .httpStatus, let status = error.httpStatus, (400..<500).contains(status),
      ![408, 425, 429].contains(status)
    else { return error }
    return DownloadError(
      .noChecksum,
      "there is no checksum file at \(url.redacted), where the server replied with status \(status): check the URL, or "
        + "leave out the checksum file", httpStatus: status, cause: error
    ).located(stage: nil, url: url, attempt: nil)
  }
}
