import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import Synchronization

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Records the calls of a file system, and decides what happens to each.
final class Calls: Sendable {
  private let log = Mutex<[(call: FileSystem.Call, path: String)]>([])
  private let decide: @Sendable (_ number: Int, FileSystem.Call, String) -> FileSystem.Verdict

  /// - Parameter decide: receives the number of the call, starting at 1.
  init(_ decide: @escaping @Sendable (Int, FileSystem.Call, String) -> FileSystem.Verdict = { _, _, _ in .proceed }) {
    self.decide = decide
  }

  /// A file system on which some calls fail with an error.
  static func failing(_ calls: Set<FileSystem.Call>, with code: CInt) -> FileSystem {
    Calls { _, call, _ in calls.contains(call) ? .fail(code) : .proceed }.system
  }

  var system: FileSystem {
    FileSystem { [self] call, path in
      let number = log.withLock { log in
        log.append((call, path))
        return log.count
      }
      return decide(number, call, path)
    }
  }

  var made: [FileSystem.Call] { log.withLock { $0.map(\.call) } }
}

/// Stores notes, as a ledger does.
final class Notes: Sendable {
  private let notes = Mutex<[String]>([])
  var last: String? { notes.withLock { $0.last } }
  var all: [String] { notes.withLock { $0 } }
  func keep(_ note: String) { notes.withLock { $0.append(note) } }
}

func context(
  id: DownloadID = "id", destination: DownloadRequest.Destination = .init(), prior: String? = nil,
  wasInterrupted: Bool = false, notes: Notes? = nil
) throws -> ProcessingContext {
  ProcessingContext(
    request: try DownloadRequest("https://example.org/a/file.bin", id: id, destination: destination), workspace: nil,
    priorNote: prior, wasInterrupted: wasInterrupted
  ) { notes?.keep($0) }
}

func key(_ id: DownloadID = "id", _ generation: Int64 = 1) -> PartialKey { PartialKey(id: id, generation: generation) }

extension Storage {
  /// The artifact of a closed partial with these bytes.
  func staged(_ bytes: [UInt8], name: String = "file.bin", _ key: PartialKey = key()) async throws -> Artifact {
    let partial = try await openPartial(key, isNew: false)
    try partial.put(bytes, at: 0)
    try partial.close()
    return try partial.artifact(name: name, mediaType: nil)
  }

  /// Publishes a new partial with these bytes while it is open, as the engine does.
  func publishHeld(
    _ bytes: [UInt8], id: DownloadID = "id", directory: String? = nil, name: String, wasInterrupted: Bool = false,
    notes: Notes? = nil, _ body: (any Partial) throws -> Void = { _ in }
  ) async throws -> Artifact {
    let destination = DownloadRequest.Destination(directory: directory, name: name)
    let partial = try await openPartial(PartialKey(id: id, generation: 1), isNew: true)
    if !bytes.isEmpty { try partial.put(bytes, at: 0) }
    try body(partial)
    try partial.finish()
    let artifact = try partial.artifact(name: name, mediaType: nil)
    let published = try await publish(
      artifact, of: partial, at: destination,
      in: try context(id: id, destination: destination, wasInterrupted: wasInterrupted, notes: notes))
    try partial.close()
    return published
  }

  func publish(
    _ bytes: [UInt8], id: DownloadID = "id", directory: String? = nil, name: String
  ) async throws -> Artifact {
    let destination = DownloadRequest.Destination(directory: directory, name: name)
    return try await publish(
      try await staged(bytes, PartialKey(id: id, generation: 1)), of: nil, at: destination, in: try context(id: id))
  }
}

extension Partial {
  func put(_ bytes: [UInt8], at offset: Int64) throws { try write(bytes.span.bytes, at: offset) }
}

extension TemporaryFolder {
  /// All files below with their bytes, and symbolic links and empty folders with a slash after their name. Empty
  /// folders of the store are left out.
  func tree(_ below: String = "") throws -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    // An enumerator would stop at mounts.
    for child in try FileManager.default.contentsOfDirectory(atPath: path(below)) {
      let name = below.isEmpty ? child : below + "/" + child
      switch try FileSystem.system.status(Entry(path(name))).kind {
      case .file: found[name] = try read(name)
      case .folder: found.merge(try tree(name)) { $1 }
      case .link, .other: found[name + "/"] = []
      }
    }
    if found.isEmpty, !below.isEmpty, !below.contains(".downpipe") { found[below + "/"] = [] }
    return found
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: true)
  }
}

/// The file systems for the tests.
enum Ground {
  /// Whether files without a name can be created and linked.
  static let hasUnnamedFiles: Bool = {
    guard let folder = try? TemporaryFolder(), let file = try? FileSystem.system.openUnnamed(in: folder.path)
    else { return false }
    defer { try? FileSystem.system.close(file) }
    return (try? FileSystem.system.link(file, to: Entry(folder.path("probe")))) != nil
  }()

  /// The real file system, and one that cannot create files without a name.
  static let systems: [FileSystem] = [.system, Calls.failing([.openUnnamed], with: EOPNOTSUPP)]
}

/// A small file system that is mounted for one test.
final class SmallMount: Sendable {
  let path: String

  /// Whether this process has the right to mount.
  static let isPossible: Bool = {
    guard let folder = try? TemporaryFolder(), let mount = try? SmallMount(folder.path("probe")) else { return false }
    mount.unmount()
    return true
  }()

  struct Refused: Error {}

  init(_ path: String, bytes: Int = 1 << 20) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    #if canImport(Glibc)
      guard mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0 else { throw Refused() }
    #else
      throw Refused()
    #endif
  }

  func makeReadOnly() throws {
    #if canImport(Glibc)
      guard mount("tmpfs", path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0 else { throw Refused() }
    #endif
  }

  /// Unmounts it before its folder is removed, even while files in it are open.
  func unmount() {
    #if canImport(Glibc)
      umount2(path, CInt(MNT_DETACH))
    #endif
  }
}

let someBytes = DownloadFixtures.pattern(size: 70_000)
let otherBytes = DownloadFixtures.pattern(size: 70_000, seed: 2)
