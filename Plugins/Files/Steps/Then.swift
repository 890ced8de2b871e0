public import DownpipeCore

/// A step that calls a closure with the artifact, and passes it on unchanged.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   MoveInto("~/Movies")
///   Then("index") { artifact, context in
///     print("\(context.request.id) is at \(artifact.path ?? "")")
///   }
/// }
/// ```
/// **At least once.** The closure is called once for each download, and again if the process ended before the ledger
/// recorded the step: let it do work that can be repeated. To know that a download has finished, watch its events; an
/// `Observer` never fails a download.
///
/// **Failure.** An error of the closure fails the step, and with it the download: `.processing` unless it is a
/// `DownloadError`, which keeps its code. The bytes are kept. `.damaged` means that the file itself is wrong, and
/// downloads it again.
///
/// **The file.** Before a `MoveInto` it is still in the storage's own folder, under another name. The closure must not
/// change, move or remove it; a step of your own that returns its output does that.
public struct Then: UniversalPostProcessor {
  /// The name of the step, in messages and in ``/DownpipeCore/DownloadRequest/steps``.
  public let name: String

  private let action: @Sendable (Artifact, ProcessingContext) async throws -> Void

  /// Creates a step that calls a closure.
  ///
  /// - Parameters:
  ///   - name: The name of the step: several of these steps in one pipeline are told apart by it.
  ///   - action: Receives the artifact and the values of the download. It may block, and is cancelled with the download.
  public init(
    _ name: String = "Then",
    _ action: @escaping @Sendable (_ artifact: Artifact, _ context: ProcessingContext) async throws -> Void
  ) {
    self.name = name
    self.action = action
  }

  /// What the step is, if its name does not say it.
  public var summary: String { name == "Then" ? "" : "calls a closure" }

  /// The closure does not change the file.
  public var keepsContent: Bool { true }

  /// Calls the closure.
  ///
  /// - Throws: `DownloadError` with `.processing`, or as the closure throws it; `.storage` if the artifact is missing;
  ///   `CancellationError`.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try Task.checkCancellation()
    try artifact.checkIsPresent()
    do {
      try await action(artifact, context)
    } catch let error as CancellationError {
      throw error
    } catch {
      throw DownloadError(error, as: .processing, stage: name)
    }
    return artifact
  }
}
