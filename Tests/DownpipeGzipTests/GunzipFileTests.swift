import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeGzip

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct GunzipFileTests {
  @Test("a second run replaces the files of the first one")
  func again() async throws {
    try await withFolder { folder in
      let input = File(path: folder + "/input", name: "a.txt.gz")
      try Data(GzipSamples.song).write(to: URL(filePath: folder + "/input"))
      try FileManager.default.createDirectory(atPath: folder + "/gunzip", withIntermediateDirectories: true)
      try Data("half".utf8).write(to: URL(filePath: folder + "/gunzip/.unpacking"))
      try Data("old".utf8).write(to: URL(filePath: folder + "/gunzip/a.txt"))
      let output = try await Gunzip().process(input, in: context(workspace: folder))
      let path = try #require(output.path)
      #expect(FileManager.default.contents(atPath: path) == Data(GzipSamples.songText))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/gunzip") == ["a.txt"])
    }
  }

  @Test("a second Gunzip step never overwrites its input")
  func chain() async throws {
    try await withFolder { folder in
      var packed = GzipSamples.songText
      for _ in 0..<3 { packed = GzipSamples.member(packed) }
      try Data(packed).write(to: URL(filePath: folder + "/input"))
      var file = File(path: folder + "/input", name: "song")
      for _ in 0..<3 {
        let output = try await Gunzip().process(file, in: context(workspace: folder))
        #expect(output.path != file.path)
        #expect(output.name == "song")
        let input = try #require(file.path)
        #expect(FileManager.default.fileExists(atPath: input))
        try FileManager.default.removeItem(atPath: input)
        file = output
      }
      #expect(FileManager.default.contents(atPath: try #require(file.path)) == Data(GzipSamples.songText))
    }
  }

  @Test("an input in its own output folder is recognised by any path")
  func otherSpelling() async throws {
    try await withFolder { folder in
      try FileManager.default.createDirectory(atPath: folder + "/gunzip", withIntermediateDirectories: true)
      try Data(GzipSamples.song).write(to: URL(filePath: folder + "/gunzip/song"))
      let input = File(path: folder + "/./gunzip//song", name: "song")
      let output = try await Gunzip().process(input, in: context(workspace: folder))
      #expect(FileManager.default.contents(atPath: folder + "/gunzip/song") == Data(GzipSamples.song))
      #expect(FileManager.default.contents(atPath: try #require(output.path)) == Data(GzipSamples.songText))
    }
  }

  @Test("a symbolic link with the name of the temporary file is not followed")
  func link() async throws {
    try await withFolder { folder in
      try Data(GzipSamples.song).write(to: URL(filePath: folder + "/input"))
      try Data("precious".utf8).write(to: URL(filePath: folder + "/precious"))
      try FileManager.default.createDirectory(atPath: folder + "/gunzip", withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: folder + "/gunzip/.unpacking", withDestinationPath: folder + "/precious")
      try FileManager.default.createSymbolicLink(
        atPath: folder + "/gunzip/a", withDestinationPath: folder + "/precious")
      let output = try await Gunzip().process(
        File(path: folder + "/input", name: "a.gz"), in: context(workspace: folder))
      #expect(FileManager.default.contents(atPath: folder + "/precious") == Data("precious".utf8))
      #expect(FileManager.default.contents(atPath: try #require(output.path)) == Data(GzipSamples.songText))
    }
  }

  @Test("anything but a regular file is refused at once")
  func notAFile() async throws {
    try await withFolder { folder in
      #expect(mkfifo(folder + "/pipe", 0o600) == 0)
      for (path, code) in [
        (folder + "/missing", DownloadError.Code.storage), (folder, .processing), (folder + "/pipe", .processing),
        ("/dev/zero", .processing),
      ] {
        let error = await #expect(throws: DownloadError.self) {
          try await Gunzip().process(File(path: path, name: "a.gz"), in: context(workspace: folder))
        }
        #expect(error?.code == code, "\(path)")
      }
    }
  }

  @Test("a missing workspace and a name that is too long are a DownloadError")
  func workspace() async throws {
    try await withFolder { folder in
      let path = folder + "/input"
      try Data(GzipSamples.song).write(to: URL(filePath: path))
      let missing = await #expect(throws: DownloadError.self) {
        try await Gunzip().process(File(path: path, name: "a.gz"), in: context(workspace: folder + "/missing"))
      }
      #expect(missing?.code == .storage)
      let name = String(repeating: "a", count: 300)
      let long = await #expect(throws: DownloadError.self) {
        try await Gunzip().process(File(path: path, name: name), in: context(workspace: folder))
      }
      #expect(long?.code == .storage)
      #expect(try FileManager.default.subpathsOfDirectory(atPath: folder) == ["input"])
    }
  }

  #if os(Linux)
    @Test(
      "a full disk is its own error, and nothing stays",
      .enabled(if: SmallDisk.isAvailable, "needs the right to mount a small tmpfs"))
    func fullDisk() async throws {
      try await withFolder { folder in
        let path = folder + "/input"
        try Data(GunzipLimitTests.bomb).write(to: URL(filePath: path))
        let workspace = folder + "/small"
        try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: true)
        try #require(mount("tmpfs", workspace, "tmpfs", 0, "size=1m") == 0)
        defer { _ = umount2(workspace, Int32(MNT_DETACH)) }
        let error = await #expect(throws: DownloadError.self) {
          try await Gunzip().process(File(path: path, name: "a.gz"), in: context(workspace: workspace))
        }
        #expect(error?.code == .noSpace)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: workspace) == [])
      }
    }
  #endif
}

#if os(Linux)
  /// Whether this process has the right to mount.
  enum SmallDisk {
    static let isAvailable: Bool = {
      let folder = FileManager.default.temporaryDirectory.appending(path: "mount-\(UUID().uuidString)").path()
      guard mkdir(folder, 0o700) == 0 else { return false }
      defer { _ = rmdir(folder) }
      guard mount("tmpfs", folder, "tmpfs", 0, "size=1m") == 0 else { return false }
      return umount(folder) == 0
    }()
  }
#endif
