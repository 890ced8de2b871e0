#if Archive
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  @testable import DownpipeArchive

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// What a tree has at a path.
  enum Found: Hashable, Sendable, CustomStringConvertible {
    case file([UInt8])
    case folder
    case link(String)

    var description: String {
      switch self {
      case .file(let bytes):
        "\(bytes.count) bytes \(String(decoding: bytes.prefix(40), as: UTF8.self).debugDescription)"
      case .folder: "a folder"
      case .link(let target): "a link to \(target)"
      }
    }

    static func text(_ text: String) -> Found { .file(Array(text.utf8)) }
  }

  /// A workspace beside a folder that no archive may touch.
  final class Bench {
    let folder: TemporaryFolder
    let workspace: String

    init() throws {
      folder = try TemporaryFolder()
      workspace = folder.path("workspace")
      try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: false)
    }

    func context(bytesReceived: Int64? = nil, durability: Durability = .process) throws -> ProcessingContext {
      ProcessingContext(
        request: try DownloadRequest("https://example.org/file"), workspace: workspace, durability: durability,
        bytesReceived: bytesReceived)
    }

    /// Unpacks an archive, and checks that nothing but the tree, or nothing at all, is left.
    func unpack(
      _ bytes: [UInt8], named name: String = "input.bin", with step: Unarchive = Unarchive(),
      durability: Durability = .process
    ) async throws -> [String: Found] {
      let path = try folder.write(bytes, to: "input")
      do {
        let output = try await step.process(File(path: path, name: name), in: context(durability: durability))
        let root = try #require(output.path)
        #expect(try FileManager.default.contentsOfDirectory(atPath: workspace) == ["unarchive"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: workspace + "/unarchive") == [output.name])
        #expect(
          try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["input", "workspace"],
          "something was written outside")
        return try Self.tree(root)
      } catch {
        #expect(try FileManager.default.subpathsOfDirectory(atPath: workspace) == [], "\(error)")
        #expect(
          try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["input", "workspace"],
          "something was written outside: \(error)")
        throw error
      }
    }

    /// The error of an archive that must be refused.
    func failure(
      _ bytes: [UInt8], with step: Unarchive = Unarchive(), _ location: SourceLocation = #_sourceLocation
    ) async -> DownloadError? {
      do {
        let tree = try await unpack(bytes, with: step)
        Issue.record("it was unpacked: \(tree)", sourceLocation: location)
      } catch let error as DownloadError {
        return error
      } catch {
        Issue.record("\(error)", sourceLocation: location)
      }
      return nil
    }

    static func tree(_ root: String) throws -> [String: Found] {
      var tree: [String: Found] = [:]
      for path in try FileManager.default.subpathsOfDirectory(atPath: root) {
        let full = root + "/" + path
        let status = try status(full)
        switch status.st_mode & S_IFMT {
        case S_IFDIR: tree[path] = .folder
        case S_IFLNK: tree[path] = .link(try FileManager.default.destinationOfSymbolicLink(atPath: full))
        default: tree[path] = .file(Array(try Data(contentsOf: URL(filePath: full, directoryHint: .notDirectory))))
        }
      }
      return tree
    }

    static func status(_ path: String) throws -> stat {
      var status = stat()
      try #require(lstat(path, &status) == 0, "\(path) does not exist")
      return status
    }

    /// The path of an entry of the tree that ``unpack(_:named:with:durability:)`` has made.
    func path(_ entry: String) throws -> String {
      let root = workspace + "/unarchive/"
      return root + (try #require(try FileManager.default.contentsOfDirectory(atPath: root).first)) + "/" + entry
    }
  }

  extension stat {
    /// The seconds of the modification time.
    var modified: Int {
      #if canImport(Darwin)
        st_mtimespec.tv_sec
      #else
        st_mtim.tv_sec
      #endif
    }
  }

  /// Programs of the system that write archives.
  enum Program {
    /// Runs a program in a folder.
    static func run(_ name: String, _ arguments: [String], in folder: String) throws {
      let path = try #require(
        ["/usr/bin/", "/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"].map { $0 + name }.first(
          where: FileManager.default.isExecutableFile(atPath:)),
        "the program \(name) is missing: .ci/test lists the packages")
      let process = Process()
      process.executableURL = URL(filePath: path)
      process.arguments = arguments
      process.currentDirectoryURL = URL(filePath: folder, directoryHint: .isDirectory)
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      process.standardInput = FileHandle.nullDevice
      try process.run()
      process.waitUntilExit()
      try #require(process.terminationStatus == 0, "\(name) \(arguments.joined(separator: " ")) failed")
    }

    /// Compresses bytes with a program that takes `-k` and adds a suffix.
    static func compress(_ name: String, _ suffix: String, _ bytes: [UInt8], _ options: [String] = []) throws -> [UInt8]
    {
      let folder = try TemporaryFolder()
      _ = try folder.write(bytes, to: "file")
      try run(name, options + ["-k", "-q", "file"] + (name == "lz4" ? ["file.lz4"] : []), in: folder.path)
      return try folder.read("file.\(suffix)")
    }
  }
#endif
