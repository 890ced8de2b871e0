#if os(Linux)
  import DownpipeTesting
  import Foundation
  import Glibc

  /// A file system of a few megabytes in memory, mounted as long as this object lives.
  final class SmallDisk: Sendable {
    /// The mount point.
    let path: String
    private let folder: TemporaryFolder

    init(megabytes: Int) async throws {
      folder = try TemporaryFolder()
      path = folder.path("disk")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try await RootAccess.run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m", "downpipe-test", path])
    }

    deinit {
      // A process may still have a file open there.
      umount2(path, CInt(MNT_DETACH))
      folder.close()
    }

    func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Changes the mount options: `size=64m`, `ro`, `rw`.
    func remount(_ option: String) async throws {
      try await RootAccess.run("mount", ["-o", "remount,\(option)", path])
    }

    func read(_ name: String) throws -> [UInt8] {
      [UInt8](try Data(contentsOf: URL(filePath: path(name), directoryHint: .notDirectory)))
    }

    /// Returns the partials on the disk, by their names in `.downpipe/partials`.
    func partials() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: path(".downpipe/partials")).filter { $0.hasSuffix(".part") }
    }
  }
#endif
