import Downpipe
import DownpipeMetalink
import Foundation

/// Reads Metalink documents of servers and of this machine.
struct MetalinkDocuments: Sendable {
  let plan: GetPlan
  let settings: PipelineSettings

  init(_ plan: GetPlan, _ settings: PipelineSettings) {
    self.plan = plan
    self.settings = settings
  }

  /// A document that cannot be used.
  struct Failure: Error {
    let error: DownloadError
  }

  /// Returns the requests for the files of a document, and warns of those that are left out.
  ///
  /// - Parameter text: A URL or a path.
  /// - Throws: ``Failure`` for this document; `CancellationError`.
  func requests(for text: String) async throws -> [DownloadRequest] {
    do {
      let url = try text.contains("://") ? plan.request(forDocument: text).url : nil
      let document = try await MetalinkDocument(parsing: url == nil ? local(text) : fetched(text))
      warn(of: document.skipped, in: text)
      // A path means the same file in every folder.
      return try plan.requests(of: document, url == nil ? Folder.absolutePath(text) : text, from: url)
    } catch let error as UsageError {
      throw Failure(error: DownloadError(.invalidRequest, error.description))
    } catch let error where !(error is CancellationError) {
      throw Failure(error: DownloadError(error, as: .invalidRequest))
    }
  }

  private func local(_ text: String) throws(UsageError) -> [UInt8] {
    try CompanionOption.read(text, atMost: MetalinkDocument.maximumBytes, "--metalink")
  }

  /// A download of its own, into memory: with the retries, the log-in and the limits of the command.
  private func fetched(_ text: String) async throws -> [UInt8] {
    let downloader = try await Downloader(Pipeline(forDocuments: settings))
    let artifact = await Result { try await downloader.add(plan.request(forDocument: text)).value }
    await downloader.shutdown()
    guard case .memory(let bytes) = try artifact.get().location else { return [] }
    return bytes
  }

  /// How many of the files that are left out are named.
  private static let mostNames = 3

  private func warn(of skipped: [MetalinkDocument.SkippedFile], in text: String) {
    for file in skipped.prefix(Self.mostNames) {
      let name = file.name.map { "“\($0.prefix(100).escaped)”" } ?? "a file without a name"
      OutputFile.warn("\(text.redactedURL.prefix(200)): \(name) is left out: \(file.reason)")
    }
    if skipped.count > Self.mostNames {
      OutputFile.warn("\(text.redactedURL.prefix(200)): \(skipped.count - Self.mostNames) more files are left out")
    }
  }
}

extension GetPlan {
  /// The request for a Metalink document.
  func request(forDocument text: String) throws(DownloadError) -> DownloadRequest {
    var request = DownloadRequest(try Self.url(text), maximumSize: Int64(MetalinkDocument.maximumBytes))
    request.headers = headers
    request.givenURL = text
    request.logsIn = logsIn
    request.isUntrusted = isUntrusted
    return request
  }
}
