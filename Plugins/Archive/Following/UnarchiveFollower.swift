#if Archive
  import DownpipeCore
  import DownpipePOSIX
  import Synchronization

  /// Unpacks a tar, or a compressed archive, while its bytes arrive, into the workspace.
  ///
  /// It does what its step does, on the same blocks. If it fails, the step reads the file, and reports why.
  final class UnarchiveFollower: TransferFollower {
    /// The file has to be complete: its directory is at its end, or may be.
    private struct NeedsWholeFile: Error {}

    /// What is unpacked. Its own object: the reader's thread has it, and must not hold the follower.
    private final class Output: Sendable {
      let tree = Mutex<WorkspaceTree?>(nil)
      let byteCount = Atomic<Int64>(0)
    }

    private let output: Output
    private let pulled: PulledTransfer

    /// - Parameter announced: The announced size of the archive; `nil` if it is unknown, and the ratio then allows no more
    ///   than ``Unarchive/Limits/freeBytes``.
    init(_ step: Unarchive, in workspace: String, announced: Int64?, _ place: FollowerPlaces.Place) {
      let output = Output()
      self.output = output
      pulled = PulledTransfer(place) { source in
        try Self.checkFormat(of: source)
        let path = try output.tree.withLock { tree in
          let new = try WorkspaceTree(in: workspace, folder: Unarchive.folder, beside: nil, system: step.system)
          let path = new.temporaryPath
          tree = consume new
          return path
        }
        let byteCount = try step.extract(source, ofBytes: announced ?? 0, into: path) { byteCount in
          try source.checkRatio(ofOutput: byteCount, step.limits.ratio, free: Unarchive.Limits.freeBytes)
        }
        output.byteCount.store(byteCount, ordering: .relaxed)
      }
    }

    deinit { discard() }

    /// Lets only those archives pass that are the same whether they are read from their beginning or from their end. Zip and
    /// 7z are read from their end, and any other file may have the directory of a zip there, unless it is a tar.
    private static func checkFormat(of source: any BlockSource) throws {
      let head = try source.head()
      guard Compression(of: head) != nil || ArchiveFormat.isTar(head) else { throw NeedsWholeFile() }
    }

    func take(_ bytes: RawSpan) throws { try pulled.put(bytes) }

    /// Ends the reading, and gives the folder its name.
    ///
    /// - Returns: The path of the folder and the bytes of its files; `nil` if the step has to read the archive.
    /// - Throws: `DownloadError` if the folder cannot be completed; `CancellationError`.
    func finish(named name: String, durability: Durability) async throws -> (path: String, byteCount: Int64)? {
      guard try await pulled.finishedWithoutError() else { return nil }
      let path = try output.tree.withLock { try $0?.commit(as: name, durability: durability) }
      return path.map { ($0, output.byteCount.load(ordering: .relaxed)) }
    }

    func discard() {
      pulled.cancel()
      output.tree.withLock { $0 = nil }
    }
  }
#endif
