public import Foundation

/// The result of a download: a file or a folder, finished or between two steps.
public struct Artifact: Sendable, Hashable {
  /// The kind of an artifact.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// A single file.
    case file
    /// A folder with its contents.
    case directory
  }

  /// The place of an artifact's bytes.
  public enum Location: Sendable, Hashable {
    /// At an absolute path.
    case path(String)
    /// In memory, with storages that keep bytes there.
    case memory([UInt8])
    /// On another machine, where a step has put it, such as `s3://bucket/key`. The URL has no secrets. The artifact has the
    /// time of that, which tells a finished one from one between two steps.
    ///
    /// The storage has nothing of such an artifact: it is neither renamed nor verified here, and stays where it is when its
    /// download is removed.
    case remote(URL)
  }

  /// Whether the artifact is a file or a folder.
  public var kind: Kind
  /// The place of its bytes.
  public var location: Location
  /// The name of the artifact, or the name that it gets when it is published. It is a single safe path component.
  public var name: String
  /// The size in bytes, if known.
  public var size: ByteCount
  /// The media type sent by the server; `nil` when there is none.
  public var mediaType: String?
  /// The modification time of a published file, by the clock of its file system; `nil` when the storage does not keep
  /// it.
  public var modifiedAt: Date?
  /// Whether the file was there before with the same bytes, and was used instead of a new one (``ConflictPolicy/reuse``).
  ///
  /// Such a file is not the download's own: it is neither replaced by a later fetch nor removed with the download.
  public var isReused = false
  /// The files that a step has made beside the artifact, which go where it goes; see ``Companion``.
  public var companions: [Companion] = []
  /// Which file it is, for an artifact that the storage has just published; `nil` for others, because ledgers do not keep it,
  /// and for storages that cannot tell. It is not compared.
  public var identity: Identity?

  /// What tells a file from another one with the same path, size and time.
  public struct Identity: Sendable, Hashable {
    /// The file system.
    public var device: UInt64
    /// The number of the file in it.
    public var inode: UInt64

    /// Creates an identity.
    public init(device: UInt64, inode: UInt64) {
      self.device = device
      self.inode = inode
    }
  }

  /// Creates a description of an artifact, which has no companions.
  public init(
    kind: Kind = .file, location: Location, name: String, size: ByteCount = .unknown, mediaType: String? = nil,
    modifiedAt: Date? = nil
  ) {
    self.modifiedAt = modifiedAt
    self.kind = kind
    self.location = location
    self.name = name
    self.size = size
    self.mediaType = mediaType
  }

  /// Whether both have the same properties, but for ``identity``: a ledger that has described one of them does not keep it.
  public static func == (left: Artifact, right: Artifact) -> Bool {
    guard left.kind == right.kind, left.location == right.location, left.name == right.name else { return false }
    guard left.size == right.size, left.mediaType == right.mediaType else { return false }
    guard left.modifiedAt == right.modifiedAt, left.isReused == right.isReused else { return false }
    return left.companions == right.companions
  }

  /// Hashes the place and the name.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(location)
    hasher.combine(name)
  }

  /// The absolute path; `nil` for an artifact in memory or on another machine.
  public var path: String? {
    if case .path(let path) = location { path } else { nil }
  }

  /// The URL of an artifact on another machine; `nil` for others.
  public var remoteURL: URL? {
    if case .remote(let url) = location { url } else { nil }
  }

  /// The file URL; `nil` for an artifact in memory or on another machine.
  public var url: URL? {
    path.map { URL(filePath: $0, directoryHint: kind == .directory ? .isDirectory : .notDirectory) }
  }
}

/// The static form of an artifact: what a step takes and returns. A chain of steps whose forms do not fit does not
/// compile.
public protocol ArtifactForm: Sendable {
  /// The kind of artifact that has this form.
  static var kind: Artifact.Kind { get }
  /// The artifact.
  var artifact: Artifact { get }
  /// Wraps an artifact, whose kind must be ``kind``.
  init(_ artifact: Artifact)
}

/// An artifact that is one file.
public struct File: ArtifactForm, Hashable {
  /// The kind of this form: ``Artifact/Kind/file``.
  public static var kind: Artifact.Kind { .file }
  /// The artifact.
  public let artifact: Artifact
  /// Wraps an artifact.
  public init(_ artifact: Artifact) { self.artifact = artifact }
  /// Creates a description of a file at an absolute path.
  public init(path: String, name: String, size: ByteCount = .unknown, mediaType: String? = nil) {
    artifact = Artifact(kind: .file, location: .path(path), name: name, size: size, mediaType: mediaType)
  }
  /// The absolute path; `nil` for a file in memory.
  public var path: String? { artifact.path }
  /// The name that the file gets when it is published.
  public var name: String { artifact.name }
}

/// An artifact that is a folder.
public struct Directory: ArtifactForm, Hashable {
  /// The kind of this form: ``Artifact/Kind/directory``.
  public static var kind: Artifact.Kind { .directory }
  /// The artifact.
  public let artifact: Artifact
  /// Wraps an artifact.
  public init(_ artifact: Artifact) { self.artifact = artifact }
  /// Creates a description of a folder at an absolute path.
  public init(path: String, name: String) {
    artifact = Artifact(kind: .directory, location: .path(path), name: name)
  }
  /// The absolute path.
  public var path: String? { artifact.path }
  /// The name that the folder gets when it is published.
  public var name: String { artifact.name }
}
