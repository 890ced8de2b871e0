public import DownpipeCore
import DownpipePOSIX

/// A step that gives the artifact another name, which it has when it is published.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Podcasts")
///   Rename { artifact, context in
///     context.request.metadata["title"].map { SafeFileName.make(fromTitle: $0) + ".mp3" } ?? artifact.name
///   }
/// }
/// ```
/// The name is one component: text with a slash, a NUL or a control character, `.`, `..`, and more than 255 bytes fail
/// with `.unsafePath`. `SafeFileName` makes any text into a name. A name in the request's destination, if it is final,
/// takes precedence when the artifact is published.
///
/// The step stands before a `MoveInto`: a published artifact has its name already, and fails with `.invalidPipeline`.
/// To give it a name on its way to another folder, use ``MoveInto/init(template:onConflict:durability:)``.
public struct Rename: UniversalPostProcessor {
  private let choose: @Sendable (Artifact, ProcessingContext) throws -> String

  /// Creates a step that names artifacts.
  ///
  /// - Parameter choosing: Returns the name of the artifact, or its present name to keep it. If it throws, the step fails
  ///   with its error.
  public init(_ choosing: @escaping @Sendable (_ artifact: Artifact) throws -> String) {
    choose = { artifact, _ in try choosing(artifact) }
  }

  /// Creates a step that names artifacts with values of the request.
  ///
  /// - Parameter choosing: Returns the name of the artifact, or its present name to keep it. If it throws, the step fails
  ///   with its error.
  public init(
    _ choosing: @escaping @Sendable (_ artifact: Artifact, _ context: ProcessingContext) throws -> String
  ) {
    choose = choosing
  }

  /// Where the name comes from.
  public var summary: String { "a name per download" }

  /// The step names a file and does not change it.
  public var keepsContent: Bool { true }

  /// Names the artifact.
  ///
  /// - Throws: `DownloadError` with `.unsafePath`, with `.invalidPipeline` for a published artifact, and with `.storage`
  ///   if its file is missing; the closure's error; `CancellationError` when the task is cancelled before.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try Task.checkCancellation()
    try artifact.checkIsPresent()
    let name = try choose(artifact, context)
    guard name != artifact.name else { return artifact }
    try Self.check(name)
    guard !isPublished(artifact, context) else {
      throw DownloadError(
        .invalidPipeline, "“\(artifact.name)” is in its folder already: put Rename before MoveInto", stage: self.name)
    }
    var renamed = artifact
    renamed.name = name
    return renamed
  }

  private static func check(_ name: String) throws(DownloadError) {
    try PathText.checkName(name)
    guard !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
      throw DownloadError(
        .unsafePath, "the name has control characters: make it with SafeFileName.make(fromTitle:)")
    }
  }

  /// Whether a step has published the artifact. Storages and `MoveInto` record the modification times of files, but not
  /// of folders; a folder that is not published is in the workspace.
  private func isPublished(_ artifact: Artifact, _ context: ProcessingContext) -> Bool {
    guard artifact.kind == .directory, let path = artifact.path, let workspace = context.workspace else {
      return artifact.modifiedAt != nil
    }
    return PathText.remainder(of: PathText.normalized(path), below: PathText.normalized(workspace)) == nil
  }
}
