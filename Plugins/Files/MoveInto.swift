public import DownpipeCore
import DownpipePOSIX

/// Moves the artifact, a file or a folder, into a folder of its own choice, made if it is missing.
///
/// ```swift
/// FileStore("~/Downloads")
/// Gunzip()
/// MoveInto("~/Movies")          // ~/Movies/film.mkv
/// ```
/// The name is that of the request's destination where that is an order, otherwise the artifact's; the destination's folder, which is
/// relative to the storage's root, does not count. On another file system the artifact is copied beside its
/// place first, so that it appears whole or not at all. After a crash the step finds out whether it had moved it.
public struct MoveInto: UniversalPostProcessor {
  /// The absolute path of the folder; `nil` where each download has its own.
  public let directory: String?
  /// What happens when a name is taken.
  public let onConflict: ConflictPolicy
  /// What the move survives.
  public let durability: Durability

  let system: FileSystem
  /// The folder of a download, where each has its own; `nil` for one that stays where it is.
  private let choose: (@Sendable (ProcessingContext) throws -> String?)?

  /// Describes the step.
  ///
  /// - Parameters:
  ///   - directory: the folder; `~` is the home directory, other relative paths begin at the working directory.
  ///   - onConflict: what happens when a name is taken.
  ///   - durability: what the move survives: the death of the process, or the loss of power.
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

  /// Describes a step that moves each download into a folder of its own.
  ///
  /// ```swift
  /// MoveInto { $0.request.metadata["folder"] }
  /// ```
  /// - Parameters:
  ///   - onConflict: what happens when a name is taken.
  ///   - durability: what the move survives.
  ///   - choosing: the folder of a download; one for which it is `nil` stays where it is. What it throws ends the step.
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

  /// The folder, and what happens when a name is taken.
  public var summary: String {
    guard let directory else { return "where asked, \(onConflict.words)" }
    let folder = PathText.remainder(of: directory, below: PathText.home).map { "~/" + $0 } ?? directory
    return "\(folder), \(onConflict.words)"
  }

  /// Moves the artifact.
  ///
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`;
  ///   `CancellationError` when its task is cancelled before anything is moved.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try Task.checkCancellation()
    guard let directory = try directory ?? choose?(context).map(PathText.absolute) else { return artifact }
    let publisher = Publisher(root: directory, onConflict: onConflict, durability: durability, system: system)
    return try await publisher.publish(
      artifact, directory: nil, name: context.request.destination.finalName ?? artifact.name, in: context)
  }
}
