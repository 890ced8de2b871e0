#if Archive
  public import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX

  /// A step that unpacks an archive into a folder: tar, zip, 7z and cpio, also compressed with gzip, xz, zstd, bzip2 or
  /// lz4.
  ///
  /// The format is recognised by the contents of the file, not by its name. libarchive reads; the files are written by
  /// this step. The folder appears complete or not at all.
  ///
  /// ```swift
  /// VerifyChecksum()                       // of the archive
  /// Unarchive(strippingComponents: 1)      // tool-1.2.tar.xz → tool-1.2/
  /// MoveInto("~/Applications")
  /// ```
  ///
  /// **Name.** The folder has the name of the archive without its suffixes: `a.tar.gz` → `a`, `a.zip` → `a`.
  ///
  /// **Confinement.** An archive from a stranger cannot write outside its folder. Folders are opened one by one, relative
  /// to each other, and links are not followed. These fail with `.unsafePath`: absolute paths, `..`, drive letters, NULs,
  /// backslashes in zip and 7z files, entries below a file or a link, names that differ only in case or Unicode form, and
  /// devices, FIFOs and sockets. Symbolic links are made last and must lead to a place inside the folder, also through
  /// other links; hard links to a file of the archive. Bits for another user or group are never set, and no file or folder
  /// allows more than in the archive, see ``Modes``. Passwords are not
  /// supported: see ``DownpipeCore/DownloadError/Code/encrypted``.
  ///
  /// **Limits.** See ``Limits``. Every byte is counted before it is written; what headers say about sizes decides nothing.
  ///
  /// **Names in archives.** Names that are not UTF-8 are read as code page 437 in zip files, and as ISO 8859-1 in others.
  ///
  /// **While bytes arrive.** If it is the first step of the pipeline that changes the bytes, a download of 2 MiB or more is
  /// unpacked into the workspace while it arrives, if it is a tar or compressed. Zip, 7z and uncompressed cpio need the
  /// whole file. When the last byte has arrived, the step only reads the last block, and gives the folder its name. Four
  /// downloads of the process are unpacked so at once, because each needs a thread and the memory of its decoder for as
  /// long as it takes. Others are unpacked when they are complete, as are those whose size the server does not announce if
  /// they become larger than ``Limits/freeBytes``. What was written is removed when the transfer starts again, is stopped
  /// or fails, and when the disk is full.
  ///
  /// **Contract.** The step blocks, and checks for cancellation after each block of at most 256 KiB. Memory does not
  /// depend on the size of the archive, but holds about 100 bytes for each entry, and what the format demands: the
  /// directory of a zip or 7z file, and the window of the decoder. The directory of a 7z, and the targets of links in it, are
  /// read by libarchive before any limit applies (it bounds the targets since version 3.8.8): do not unpack 7z files from
  /// strangers without a limit on the memory of the process. It writes a hidden folder in the workspace, renames
  /// it when it is complete, and removes it when the step fails or is cancelled. The storage must be one that writes
  /// files.
  ///
  /// It throws `DownloadError` with `.damaged` for a file that is no archive, is damaged or truncated, which the engine
  /// downloads again; `.unsafePath`; `.tooLarge` for a limit; `.encrypted`; `.processing` for a format or a compression
  /// method that is not read, and for a storage without files; `.noSpace`, `.permission` or `.storage` for errors of the
  /// file system; and `CancellationError`.
  public struct Unarchive: PostProcessor {
    /// What happens to symbolic links and hard links.
    public enum Links: String, Sendable, Hashable {
      /// They are made if they lead to a place inside the folder; otherwise the archive is refused.
      case inside
      /// An archive with a link is refused.
      case refuse
      /// They are left out.
      case skip
    }

    /// Whether the times of files and folders, or their owners, are taken from the archive.
    public enum Attributes: String, Sendable, Hashable {
      /// As in the archive.
      case keep
      /// As of new files.
      case drop
    }

    /// Which permissions files and folders get. Except with ``drop`` they never allow more than in the archive, but the owner
    /// can always read files, and use folders.
    public enum Modes: String, Sendable, Hashable {
      /// Those of new files and folders that are in the archive, too: with the umask 022, 0600 stays 0600 and 0664 becomes
      /// 0644. The right to execute is kept if the owner has it in the archive.
      case executable
      /// As in the archive, for reading, writing and executing, under any umask.
      case keep
      /// Those of new files and folders.
      case drop
    }

    /// The limits on what an archive can contain. Each error names its limit and the entry.
    ///
    /// Nesting needs none: an archive may be in one compressed file, and what is in its entries is not unpacked.
    public struct Limits: Sendable, Hashable {
      /// The bytes of all files that the limit on the ratio always allows: 1 GiB.
      public static let freeBytes: Int64 = 1 << 30
      /// The bytes that the paths of all folders and links have at most, with the targets of links: 256 MiB. They are kept
      /// in memory until the end. Each entry needs about 130 bytes beside that.
      public static let pathBytes: Int64 = 256 << 20

      /// The maximum number of entries, also of those that are left out, and of the files, links and folders that they
      /// make, also of folders that only the paths of others name.
      public var entries: Int64
      /// The maximum bytes of all files; `nil` for no limit. Holes of sparse files count.
      public var bytes: Int64?
      /// The maximum ratio of the bytes of all files to those that were downloaded; `nil` for no limit. It does not apply
      /// to the first ``freeBytes``.
      public var ratio: Int64?
      /// The maximum number of components of a path, at most 200.
      public var depth: Int
      /// The maximum length of a path, and of the target of a link, in bytes of UTF-8.
      public var pathLength: Int
      /// The maximum length of a name in bytes of UTF-8. File systems allow 255.
      public var nameLength: Int

      /// Creates limits.
      ///
      /// - Parameters:
      ///   - entries: The maximum number of entries, a million by default.
      ///   - bytes: The maximum bytes of all files, 64 GiB by default; `nil` for no limit.
      ///   - ratio: The maximum ratio of the bytes of all files to those that were downloaded, 256 by default; `nil` for
      ///     no limit.
      ///   - depth: The maximum number of components of a path, 64 by default.
      ///   - pathLength: The maximum length of a path in bytes, 2048 by default.
      ///   - nameLength: The maximum length of a name in bytes, 255 by default.
      public init(
        entries: Int64 = 1_000_000, bytes: Int64? = 64 << 30, ratio: Int64? = 256, depth: Int = 64,
        pathLength: Int = 2048, nameLength: Int = 255
      ) {
        self.entries = max(0, entries)
        self.bytes = bytes.map { max(0, $0) }
        self.ratio = ratio.map { max(0, $0) }
        self.depth = min(max(1, depth), 200)
        self.pathLength = max(1, pathLength)
        self.nameLength = min(max(1, nameLength), 255)
      }
    }

    /// The number of leading components that are removed from each path.
    public let stripsComponents: Int
    /// Whether all files go directly into the folder.
    public let flattens: Bool
    /// What happens to links.
    public let links: Links
    /// Whether the times of the archive are kept.
    public let times: Attributes
    /// Which permissions files and folders get.
    public let modes: Modes
    /// Whether the owners of the archive are kept.
    public let owners: Attributes
    /// The limits on the contents.
    public let limits: Limits
    let only: [EntryPattern]
    let except: [EntryPattern]
    /// Smaller in tests.
    var pathBytes = Limits.pathBytes
    let system: FileSystem
    let places: FollowerPlaces

    /// Creates a step that unpacks archives.
    ///
    /// In a pattern, `*` and `?` stand for characters of a name, `**` for any, and `[a-z]` for one of a set. A pattern with
    /// a slash is compared with the path in the archive, one without with each name in it. What is below a folder that
    /// matches matches, too.
    ///
    /// - Parameters:
    ///   - only: Patterns of the entries to unpack; all by default. It is an error if no entry matches.
    ///   - except: Patterns of entries that are left out.
    ///   - strippingComponents: The number of leading components that are removed from each path. Entries with no more
    ///     components are left out.
    ///   - flattening: Whether all files go directly into the folder. Symbolic links are then left out, and two files of
    ///     one name are an error.
    ///   - links: What happens to symbolic links and hard links.
    ///   - times: Whether the modification times of the archive are kept, as by default.
    ///   - modes: Which permissions files and folders get; by default those of new ones that are in the archive, too.
    ///   - owners: Whether the numbers of user and group are kept, which needs the rights of the superuser. Names of
    ///     users in the archive are not used.
    ///   - limits: The limits on the contents.
    public init(
      only: [String] = [], except: [String] = [], strippingComponents: Int = 0, flattening: Bool = false,
      links: Links = .inside, times: Attributes = .keep, modes: Modes = .executable, owners: Attributes = .drop,
      limits: Limits = Limits()
    ) {
      self.init(
        only: only, except: except, strippingComponents: strippingComponents, flattening: flattening, links: links,
        times: times, modes: modes, owners: owners, limits: limits, system: .system)
    }

    init(
      only: [String] = [], except: [String] = [], strippingComponents: Int = 0, flattening: Bool = false,
      links: Links = .inside, times: Attributes = .keep, modes: Modes = .executable, owners: Attributes = .drop,
      limits: Limits = Limits(), system: FileSystem, places: FollowerPlaces = PulledTransfer.places
    ) {
      self.only = only.map { EntryPattern($0) }
      self.except = except.map { EntryPattern($0) }
      stripsComponents = max(0, strippingComponents)
      flattens = flattening
      self.links = links
      self.times = times
      self.modes = modes
      self.owners = owners
      self.limits = limits
      self.system = system
      self.places = places
    }

    /// The limits, and the settings that differ from the defaults.
    public var summary: String {
      var parts = [limits.bytes.map { "at most \(ByteFormat.binary.format($0))" } ?? "any size"]
      parts.append(limits.ratio.map { "at most \($0):1" } ?? "any ratio")
      parts.append("at most \(limits.entries) entries")
      if !only.isEmpty { parts.append("only \(only.map(\.text).joined(separator: ", "))") }
      if !except.isEmpty { parts.append("except \(except.map(\.text).joined(separator: ", "))") }
      if stripsComponents > 0 { parts.append("without \(stripsComponents) leading components") }
      if flattens { parts.append("flat") }
      if links != .inside { parts.append("links: \(links.rawValue)") }
      if times != .keep { parts.append("new times") }
      if modes != .executable { parts.append("modes: \(modes.rawValue)") }
      if owners == .keep { parts.append("with owners") }
      return parts.joined(separator: ", ")
    }

    /// Whether the follower writes to the workspace: always.
    public var followerWrites: Bool { true }

    /// Returns a follower that unpacks a tar, or a compressed archive, while it arrives; `nil` without a workspace, and if
    /// four downloads are being unpacked so.
    public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
      guard let workspace = context.workspace, let place = places.take() else { return nil }
      return UnarchiveFollower(self, in: workspace, announced: context.bytesReceived, place)
    }

    /// Unpacks the archive into a folder in the workspace.
    public func process(_ input: File, in context: ProcessingContext) async throws -> Directory {
      try Task.checkCancellation()
      guard let workspace = context.workspace else {
        throw DownloadError(
          .processing,
          "Unarchive makes a folder, and this storage has none: use one that writes files, such as FileStore")
      }
      let name = UnpackedFileName.folder(for: input.name)
      if let follower = context.follower as? UnarchiveFollower {
        if let (path, byteCount) = try await follower.finish(named: name, durability: context.durability) {
          return directory(path, byteCount)
        }
        follower.discard()
      }
      let progress = InputProgress(of: input.artifact, in: context)
      let packed = try ArtifactBytes(input.artifact, didRead: progress.didRead)
      let (path, byteCount) = try unpack(
        ArtifactBlocks(packed), ofBytes: context.bytesReceived ?? packed.byteCount, beside: input.path,
        named: name, in: workspace, durability: context.durability, progress: progress)
      return directory(path, byteCount)
    }

    private func directory(_ path: String, _ byteCount: Int64) -> Directory {
      Directory(
        Artifact(
          kind: .directory, location: .path(path), name: PathText.split(path).name, size: .known(byteCount)))
    }

    /// The name of the folder for the output, in the workspace.
    static let folder = "unarchive"

    /// Unpacks what a source has.
    func unpack(
      _ source: any BlockSource, ofBytes inputByteCount: Int64, beside input: String?, named name: String,
      in workspace: String, durability: Durability, progress: InputProgress? = nil
    ) throws -> (path: String, byteCount: Int64) {
      var tree = try WorkspaceTree(in: workspace, folder: Self.folder, beside: input, system: system)
      let byteCount = try extract(source, ofBytes: inputByteCount, into: tree.temporaryPath, progress: progress)
      return (try tree.commit(as: name, durability: durability), byteCount)
    }

    /// Unpacks what a source has into an empty folder, and returns the bytes of all files.
    ///
    /// - Parameter willWrite: Called with the bytes of all files before the last of them are written.
    func extract(
      _ source: any BlockSource, ofBytes inputByteCount: Int64, into path: String, progress: InputProgress? = nil,
      willWrite: ((Int64) throws -> Void)? = nil
    ) throws -> Int64 {
      let budget = budget(forInput: inputByteCount)
      let reader = try ArchiveReader(source, stream: budget.withHeaders, maximumEntries: limits.entries)
      var extraction = Extraction(
        self, reader, into: try ConfinedFolder(path, system: system), budget: budget, progress: progress,
        willWrite: willWrite)
      try extraction.run()
      return extraction.byteCount
    }

    /// The lowest limit on the bytes of all files.
    func budget(forInput byteCount: Int64) -> OutputLimit {
      .lowest(
        bytes: limits.bytes, ratio: limits.ratio, free: Limits.freeBytes, input: byteCount, memory: nil,
        verb: "unpacks", names: ("Unarchive.Limits.bytes", "Unarchive.Limits.ratio"))
    }

    func chooses(_ path: [String]) -> Bool {
      (only.isEmpty || only.contains { $0.matches(path) }) && !except.contains { $0.matches(path) }
    }
  }
#endif
