import Downpipe
import DownpipeMetalink
import Foundation
import Synchronization

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

  /// What is to be done about a document.
  struct Content: Sendable {
    var requests: [DownloadRequest] = []
    /// The files that are left out: failures of the command, because they were asked for.
    var leftOut: [DownloadResult] = []
    /// Files whose hashes cannot be checked.
    var notices: [DownloadNotice] = []
  }

  /// Returns the requests for the files of a document.
  ///
  /// - Parameter text: A URL or a path.
  /// - Throws: ``Failure`` for a document that cannot be used or has no file; `CancellationError`.
  func content(of text: String) async throws -> Content {
    do {
      guard text.contains("://") else {
        // A path means the same file in every folder.
        return try content(of: MetalinkDocument(parsing: local(text)), Folder.absolutePath(text), from: nil, text)
      }
      let (bytes, url) = try await fetched(plan.request(forDocument: text))
      return try content(of: MetalinkDocument(parsing: bytes), text, from: url, text)
    } catch let error as UsageError {
      throw Failure(error: DownloadError(.invalidRequest, error.description))
    } catch let error where !(error is CancellationError) {
      throw Failure(error: DownloadError(error, as: .invalidRequest))
    }
  }

  private func content(
    of document: MetalinkDocument, _ name: String, from url: URL?, _ text: String
  ) throws -> Content {
    var content = Content()
    func leaveOut(_ error: DownloadError) {
      // Of two files with one name, the first one has the id of the name.
      let identity = DownloadIdentity(document: name, leftOut: content.leftOut.count)
      content.leftOut.append(DownloadResult(id: identity.id, url: text, error: error))
    }
    do {
      content.requests = try plan.requests(of: document, name, from: url) { file, reason in
        let id = DownloadIdentity(document: name, file: file).id
        content.notices.append(
          DownloadNotice(
            id: id, url: text,
            error: DownloadError(.unverified, "the file “\(file.prefix(100).escaped)” is not verified: \(reason)")))
      } skipping: {
        leaveOut($0.error)
      }
    } catch {
      // Without any file left, the reason is that of each.
      guard !content.leftOut.isEmpty else { throw error }
    }
    return content
  }

  private func local(_ text: String) throws(UsageError) -> [UInt8] {
    try CompanionOption.read(text, atMost: MetalinkDocument.maximumBytes, "--metalink")
  }

  /// Fetches a document, or the document that the server of a file names as its description (RFC 6249 §4.1).
  ///
  /// Each is a download of its own, into memory: with the retries, the log-in and the limits of the command. A document that
  /// a server has named gets no log-in.
  private func fetched(_ request: DownloadRequest) async throws -> (bytes: [UInt8], url: URL) {
    let finder = DescriptionFinder()
    do {
      return (try await bytes(of: request, finder), request.url)
    } catch {
      guard let url = finder.found else { throw error }
      var described = request
      described.id = DownloadID()
      described.url = url
      described.isNamedByServer = true
      return (try await bytes(of: described, nil), url)
    }
  }

  private func bytes(of request: DownloadRequest, _ finder: DescriptionFinder?) async throws -> [UInt8] {
    let downloader = try await Downloader(Pipeline(forDocuments: settings, finder))
    let artifact = await Result { try await downloader.add(request).value }
    await downloader.shutdown()
    guard case .memory(let bytes) = try artifact.get().location else { return [] }
    return bytes
  }
}

/// Finds the Metalink document of a file in the reply to a request for the file, and does not fetch the file.
final class DescriptionFinder: RequestInterceptor {
  private let url = Mutex<URL?>(nil)

  /// The document; `nil` if the reply was one, or has named none.
  var found: URL? { url.withLock { $0 } }

  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    let reply = try await next(request)
    let types = ["application/metalink4+xml", "application/metalink+xml"]
    let isDocument = reply.mediaType.map { types.contains(MediaType.withoutParameters($0)) } ?? false
    guard !isDocument,
      let description = reply.descriptions.first(where: { $0.mediaType.map(types.contains) ?? false })
    else { return reply }
    reply.body.discard()
    url.withLock { $0 = description.url }
    throw DownloadError(.processing, "the server describes the file in a Metalink document")
  }
}

extension GetPlan {
  /// The request for a Metalink document.
  func request(forDocument text: String) throws(DownloadError) -> DownloadRequest {
    var request = DownloadRequest(try Self.url(text))
    request.maximumSize = Int64(MetalinkDocument.maximumBytes)
    request.headers = headers
    request.givenURL = text
    request.logsIn = logsIn
    request.isUntrusted = isUntrusted
    return request
  }
}
