public import DownpipeCore
import DownpipePOSIX
import Foundation

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
  /// The template of the path; `nil` unless the step was created with one.
  public var template: String? { path?.text }
  /// What happens when the name exists already in the folder.
  public let onConflict: ConflictPolicy
  /// Whether the move survives only the end of the process, or also a loss of power.
  public let durability: Durability

  let system: FileSystem
  /// Returns the folder of a download; `nil` for an artifact that is not moved.
  private let choose: (@Sendable (ProcessingContext) throws -> String?)?
  private let path: PathTemplate?
  /// The date for the template, if the server states none.
  private let now: @Sendable () -> Date

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
    path = nil
    now = { Date() }
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
    path = nil
    now = { Date() }
  }

  /// Creates a step that moves each artifact to a path made of values of its download.
  ///
  /// ```swift
  /// let films = try MoveInto(template: "~/Films/{host}/{year}/{name}")
  /// let episodes = try MoveInto(template: "~/Podcasts/{metadata:show}/{year}-{month}-{day} {stem}.{extension}")
  /// ```
  /// | field | value |
  /// |---|---|
  /// | `{name}` | the name in the request's destination, if it is final; otherwise the artifact's own |
  /// | `{stem}`, `{extension}` | the two parts of that name, without the dot: `logs` and `tar.gz`; a folder has no extension |
  /// | `{host}` | the host of the request's URL, with the port if the URL has one: `example.org-8080` |
  /// | `{year}`, `{month}`, `{day}` | four and two digits, in UTC, of the time at which the file was last modified, as its server states; otherwise of the time at which the step runs |
  /// | `{id}` | the id of the download |
  /// | `{metadata:KEY}` | a value of the request's ``/DownpipeCore/DownloadRequest/metadata`` |
  ///
  /// `{{` and `}}` stand for the braces. The last component names the artifact, so it has `{name}`, `{stem}`, `{id}` or
  /// `{metadata:KEY}`; a template that ends with a slash ends with `{name}`.
  ///
  /// **Safety.** Servers choose names, and feeds choose titles. Each value is made into text that is safe as a single
  /// name, as `SafeFileName.make(fromTitle:)` does: without separators, control characters, and dots and blanks at its
  /// ends, and at most 200 bytes long. A missing or empty value becomes `_`. A component of several values that is longer
  /// is cut in the same way. So no value adds a folder or leaves the one before the first field. Symbolic links below that
  /// folder fail with `.unsafePath`.
  ///
  /// - Parameters:
  ///   - template: The path; `~` is the home directory, and other relative paths start at the working directory.
  ///   - onConflict: What happens when the name exists already in the folder; the artifact gets a number by default.
  ///   - durability: Whether the move survives only the end of the process, or also a loss of power.
  /// - Throws: `DownloadError` with `.invalidPipeline` for an unknown field, a brace without its counterpart, `..` after
  ///   the first field, and a last component that would give all artifacts one name.
  public init(
    template: String, onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process
  ) throws(DownloadError) {
    try self.init(template: template, onConflict: onConflict, durability: durability, system: .system) { Date() }
  }

  init(
    template: String, onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process, system: FileSystem,
    now: @escaping @Sendable () -> Date
  ) throws(DownloadError) {
    path = try PathTemplate(template)
    directory = nil
    self.onConflict = onConflict
    self.durability = durability
    self.system = system
    choose = nil
    self.now = now
  }

  /// The absolute path of the folder before the first field of the template; `nil` without a template.
  package var templateRoot: String? { path?.root }

  /// The path that an artifact gets if nothing has it; `nil` if it is not moved, or the folder cannot be chosen.
  package func path(of artifact: Artifact, in context: ProcessingContext) -> String? {
    if let path {
      let target = path.target(of: artifact, in: context, now: now())
      return [path.root, target.directory, target.name].compactMap(\.self).joined(separator: "/")
    }
    let folder = directory ?? (try? choose?(context)).flatMap { $0 }.map(PathText.absolute)
    return folder.map { $0 + "/" + (context.request.destination.finalName ?? artifact.name) }
  }

  /// The folder, or the template, and the conflict policy.
  public var summary: String {
    if let template { return "\(template), \(onConflict.words)" }
    guard let directory else { return "a folder per download, \(onConflict.words)" }
    let folder = PathText.remainder(of: directory, below: PathText.home).map { "~/" + $0 } ?? directory
    return "\(folder), \(onConflict.words)"
  }

  /// The step moves a file and does not change it.
  public var keepsContent: Bool { true }

  /// The folder that the artifact is moved into; with a template, the one before the first field.
  public func outputFolders(in context: ProcessingContext) -> [String] {
    [(path?.root ?? directory ?? (try? choose?(context))).map(PathText.absolute)].compactMap(\.self)
  }

  /// Moves the artifact.
  ///
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`;
  ///   `CancellationError` when the task is cancelled before the move starts.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try Task.checkCancellation()
    if let path {
      let target = path.target(of: artifact, in: context, now: now())
      // Only what is before the first field is the user's: symbolic links below it are not followed.
      let publisher = Publisher(root: path.root, onConflict: onConflict, durability: durability, system: system)
      return try await publisher.publish(artifact, directory: target.directory, name: target.name, in: context)
    }
    guard let directory = try directory ?? choose?(context).map(PathText.absolute) else { return artifact }
    let publisher = Publisher(root: directory, onConflict: onConflict, durability: durability, system: system)
    return try await publisher.publish(
      artifact, directory: nil, name: context.request.destination.finalName ?? artifact.name, in: context)
  }
}
