public import Foundation

/// What a download has become: a file or a folder, finished or on its way through the steps.
public struct Artifact: Sendable, Hashable {
  /// What it is.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// One file.
    case file
    /// A folder and all that is in it.
    case directory
  }

  /// Where its bytes are.
  public enum Location: Sendable, Hashable {
    /// At an absolute path.
    case path(String)
    /// In memory, with storages that keep it there.
    case memory([UInt8])
  }

  /// What it is.
  public var kind: Kind
  /// Where its bytes are.
  public var location: Location
  /// The name it has, or is to have once it is published; a single safe path component.
  public var name: String
  /// Its size in bytes, where that is known.
  public var size: ByteCount
  /// The media type the server gave, if any.
  public var mediaType: String?
  /// When the bytes of a published file last changed, by the clock of its file system, where the storage keeps that.
  public var modifiedAt: Date?

  /// Describes an artifact.
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

  /// Its absolute path; `nil` for one in memory.
  public var path: String? {
    if case .path(let path) = location { path } else { nil }
  }

  /// Its file URL; `nil` for one in memory.
  public var url: URL? {
    path.map { URL(filePath: $0, directoryHint: kind == .directory ? .isDirectory : .notDirectory) }
  }
}

/// The static form of an artifact: what a step takes and gives, so that steps that do not fit do not compile.
public protocol ArtifactForm: Sendable {
  /// What an artifact of this form is.
  static var kind: Artifact.Kind { get }
  /// The artifact itself.
  var artifact: Artifact { get }
  /// Wraps an artifact, whose kind must be ``kind``.
  init(_ artifact: Artifact)
}

/// An artifact that is one file.
public struct File: ArtifactForm, Hashable {
  /// A file.
  public static var kind: Artifact.Kind { .file }
  /// The artifact itself.
  public let artifact: Artifact
  /// Wraps an artifact.
  public init(_ artifact: Artifact) { self.artifact = artifact }
  /// Describes a file at an absolute path.
  public init(path: String, name: String, size: ByteCount = .unknown, mediaType: String? = nil) {
    artifact = Artifact(kind: .file, location: .path(path), name: name, size: size, mediaType: mediaType)
  }
  /// Its absolute path; `nil` for one in memory.
  public var path: String? { artifact.path }
  /// The name it is to have.
  public var name: String { artifact.name }
}

/// An artifact that is a folder.
public struct Directory: ArtifactForm, Hashable {
  /// A folder.
  public static var kind: Artifact.Kind { .directory }
  /// The artifact itself.
  public let artifact: Artifact
  /// Wraps an artifact.
  public init(_ artifact: Artifact) { self.artifact = artifact }
  /// Describes a folder at an absolute path.
  public init(path: String, name: String) {
    artifact = Artifact(kind: .directory, location: .path(path), name: name)
  }
  /// Its absolute path.
  public var path: String? { artifact.path }
  /// The name it is to have.
  public var name: String { artifact.name }
}
