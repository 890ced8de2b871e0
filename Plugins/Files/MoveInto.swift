public import DownpipeCore
import DownpipePOSIX

/// A step that moves the artifact, a file or a folder, into a folder of your choice, which is created if necessary.
///
/// ```swift
/// FileStore("~/Downloads")
/// Gunzip()
/// MoveInto("~/Movies")          // ~/Movies/film.mkv
/// ```
/// The artifact gets the name in the request's destination, if it is final, and keeps its own name otherwise. The
/// folder in the destination is ignored, since it is relative to the root of the storage. If the folder is on another
/// file system, the artifact is copied to a hidden name there first, so that it appears complete or not at all. After a
/// crash the step detects whether it moved the artifact.
public struct MoveInto: UniversalPostProcessor {
  /// The absolute path of the folder; `nil` if the folder is chosen for each download.
  public let directory: String?
  /// What happens when the name exists already in the folder.
  public let onConflict: ConflictPolicy
  /// Whether the move survives only the end of the process, or also a loss of power.
  public let durability: Durability

  let system: FileSystem
  /// Returns the folder of a download; `nil` for an artifact that is not moved.
  private let choose: (@Sendable (ProcessingContext) throws -> String?)?

  /// Creates a step that moves all artifacts into one folder.
  ///
  /// - Parameters:
  ///   - directory: The folder; `~` is the home directory, and other relative paths start at the working directory.
  ///   - onConflict: What happens when the name exists already in the folder; the artifact gets a number by default.
  ///   - durability: Whether the move survives only the end of the process, or also a loss of power.
  public init(_ directory: String, onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process) {
    self.init(directory, onConflict: onConflict, durability: durability, system: .system)
  }

  init(
    _ directory: String, onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process, system: FileSystem
  ) {
    self.directory = PathText.absolute(directory)
    self.onConflict = onConflict
    self.durability = durability
    self.system = system
    choose = nil
  }

  /// Creates a step that chooses the folder for each download.
  ///
  /// ```swift
  /// MoveInto { $0.request.metadata["folder"] }
  /// ```
  /// - Parameters:
  ///   - onConflict: What happens when the name exists already in the folder; the artifact gets a number by default.
  ///   - durability: Whether the move survives only the end of the process, or also a loss of power.
  ///   - choosing: Returns the folder of a download, or `nil` for an artifact that is not moved. If it throws, the step
  ///     fails with its error.
  public init(
    onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process,
    choosing: @escaping @Sendable (ProcessingContext) throws -> String?
  ) {
    directory = nil
    self.onConflict = onConflict
    self.durability = durability
    system = .system
    choose = choosing
  }

  /// The folder and the conflict policy.
  public var summary: String {
    guard let directory else { return "a folder per download, \(onConflict.words)" }
    let folder = PathText.remainder(of: directory, below: PathText.home).map { "~/" + $0 } ?? directory
    return "\(folder), \(onConflict.words)"
  }

  /// Moves the artifact.
  ///
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`;
  ///   `CancellationError` when the task is cancelled before the move starts.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try Task.checkCancellation()
    guard let directory = try directory ?? choose?(context).map(PathText.absolute) else { return artifact }
    let publisher = Publisher(root: directory, onConflict: onConflict, durability: durability, system: system)
    return try await publisher.publish(
      artifact, directory: nil, name: context.request.destination.finalName ?? artifact.name, in: context)
  }
}
