package import Foundation

extension DownloadRequest {
  /// The beginning of a file, fetched by another downloader, such as URLSession's temporary file.
  public struct HeadStart: Sendable, Hashable, Codable {
    /// The absolute path of the file that contains the bytes, starting with the first one. It is copied and not
    /// changed.
    public var file: String
    /// The number of bytes to use. If the file is shorter, all of its bytes are used.
    public var count: Int64
    /// The validator of the representation. Without one, the bytes are compared with the server's before they are used.
    public var validator: Validator?
    /// The size of the whole file, if known.
    public var total: ByteCount
    /// What proves the bytes; the server by default.
    public var proof: Proof
    /// What is known of the file of a download that is being repaired.
    package var known: Known?

    /// Creates a description of a head start.
    public init(
      file: String, count: Int64, validator: Validator? = nil, total: ByteCount = .unknown, proof: Proof = .server
    ) {
      self.file = file
      self.count = count
      self.validator = validator
      self.total = total
      self.proof = proof
    }

    /// What servers have said of a file, beside its validator and size.
    package struct Known: Sendable, Hashable, Codable {
      package var resource: String?
      package var name: String?
      package var mediaType: String?
      package var digests: [FileDigest]
      package var freshUntil: Date?
    }

    /// What proves the bytes of a head start.
    public enum Proof: String, Sendable, Hashable, Codable {
      /// The server: some of the bytes, or all of them, are fetched again and compared.
      case server
      /// The digests of the request, or those of its pieces. If ``HeadStart/total`` bytes are there, nothing is asked of
      /// the server unless they are wrong. Without such digests the server proves them.
      case digests
    }
  }

  /// The folder and name of a finished file. Both are optional and relative to the storage's root.
  public struct Destination: Sendable, Hashable, Codable {
    /// The folder below the root, created if it does not exist; the root itself when `nil`.
    public var directory: String?
    /// The name of the file.
    ///
    /// When it is `nil`, the file gets the name suggested by the server, made safe, or the last component of the URL.
    /// ``nameUse`` says how steps treat the name. To use a title such as `AC/DC: Live`, convert it with
    /// ``SafeFileName/make(fromTitle:fallback:)``.
    public var name: String?
    /// Whether the name is the final name or only replaces the server's suggestion.
    public var nameUse: NameUse

    /// Creates a destination.
    public init(directory: String? = nil, name: String? = nil, nameUse: NameUse = .order) {
      self.directory = directory
      self.name = name
      self.nameUse = nameUse
    }

    /// How steps that rename their output treat the requested name.
    public enum NameUse: String, Sendable, Hashable, Codable {
      /// The published file has this name, even if a step renames its output. With `Gunzip`, `named.txt.gz` is the name
      /// of the decompressed text.
      case order
      /// The name replaces the server's suggestion, and a step may change it. With `Gunzip`, `named.txt.gz` is
      /// published as `named.txt`.
      case fallback
    }

    /// The name of the published file if the request determines it; otherwise `nil`.
    public var finalName: String? { nameUse == .order ? name : nil }

    mutating func setName(_ name: String) {
      self.name = name
      nameUse = .order
    }
  }
}

extension DownloadRequest.Destination {
  /// Decodes a destination. Keys that earlier versions did not write get their default values.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      directory: try container.decodeIfPresent(String.self, forKey: .directory),
      name: try container.decodeIfPresent(String.self, forKey: .name),
      nameUse: try container.decodeIfPresent(NameUse.self, forKey: .nameUse) ?? .order)
  }
}

extension DownloadRequest.HeadStart {
  /// Decodes a head start. Keys that earlier versions did not write get their default values.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      file: try container.decode(String.self, forKey: .file), count: try container.decode(Int64.self, forKey: .count),
      validator: try container.decodeIfPresent(Validator.self, forKey: .validator),
      total: try container.decode(ByteCount.self, forKey: .total),
      proof: try container.decodeIfPresent(Proof.self, forKey: .proof) ?? .server)
    known = try container.decodeIfPresent(Known.self, forKey: .known)
  }
}
