import Downpipe
import DownpipeS3
import Foundation
import Synchronization

/// Uploads the file to the object storage that a request names. Endpoint, region and keys are those of the environment.
struct UploadStep: UniversalPostProcessor {
  var name: String { RequestSteps.uploadStep }
  var summary: String { "as each request says" }
  var keepsContent: Bool { true }

  #if LIBCURL
    private let places = UploadPlaces()

    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      guard let text = context.request.metadata[RequestSteps.uploadKey] else {
        throw DownloadError.unreadableSettings("--upload-to")
      }
      guard artifact.kind == .file else {
        throw DownloadError(.processing, "a folder cannot be uploaded: leave out --extract, or --upload-to")
      }
      return try await places.step(text).process(File(artifact), in: context).artifact
    }

    func follower(in context: ProcessingContext) -> (any TransferFollower)? {
      guard let text = context.request.metadata[RequestSteps.uploadKey] else { return nil }
      return try? places.step(text).follower(in: context)
    }
  #else
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      throw DownloadError(
        .processing,
        "the file was added with --upload-to, and this downpipe cannot upload: build it with the trait Curl")
    }
  #endif
}

#if LIBCURL
  /// The buckets in use, each with its connections.
  private final class UploadPlaces: Sendable {
    /// Queues name few buckets. With more, connections are made anew.
    private static let most = 16
    private let steps = Mutex<[String: UploadTo]>([:])

    func step(_ text: String) throws(DownloadError) -> UploadTo {
      if let step = steps.withLock({ $0[text] }) { return step }
      let step = UploadTo(try S3(text))
      return steps.withLock { steps in
        if let known = steps[text] { return known }
        if steps.count >= Self.most { steps.removeAll() }
        steps[text] = step
        return step
      }
    }
  }
#endif
