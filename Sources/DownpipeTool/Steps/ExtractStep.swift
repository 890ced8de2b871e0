import Downpipe
import DownpipeArchive

/// Unpacks an archive as its request says.
struct ExtractStep: PostProcessor {
  var name: String { RequestSteps.extractionStep }
  var summary: String { "as each request says" }

  #if Archive
    var followerWrites: Bool { true }

    func follower(in context: ProcessingContext) -> (any TransferFollower)? { step(context).follower(in: context) }

    func process(_ input: File, in context: ProcessingContext) async throws -> Directory {
      try await step(context).process(input, in: context)
    }

    private func step(_ context: ProcessingContext) -> Unarchive {
      Unarchive(strippingComponents: RequestSteps(context.request).strippedComponents ?? 0)
    }

    /// The name of the folder for an archive.
    static func folderName(for archive: String) -> String { UnpackedFileName.folder(for: archive) }
  #else
    func process(_ input: File, in context: ProcessingContext) async throws -> Directory {
      throw DownloadError(
        .processing,
        "the file was added with --extract, and this downpipe was built without libarchive: build it with the trait "
          + "Archive")
    }

    static func folderName(for archive: String) -> String { archive }
  #endif
}
