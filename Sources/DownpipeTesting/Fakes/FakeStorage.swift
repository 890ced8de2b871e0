public import DownpipeCore
import Foundation

/// A storage in memory that records its calls and fails as a test plans.
///
/// ```swift
/// let storage = FakeStorage()
/// storage.fail(.write, at: 3, with: DownloadError(.noSpace, "the disk is full"))
/// let downloader = try await Downloader { source; storage }
/// _ = try? await downloader.add("https://example.org/films/film.mkv").value
/// #expect(storage.published["films/film.mkv"] == bytes)
/// #expect(storage.calls.map(\.operation) == [.openPartial, .write, .write, .write, .close])
/// ```
/// Published artifacts have a fictitious path below ``root`` and no file on disk: ``published`` and ``bytes(of:)``
/// return their bytes. It can be used from any thread.
public final class FakeStorage: Storage {
  /// The calls that are recorded and can fail.
  public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// `openPartial`
    case openPartial
    /// `removePartial`
    case removePartial
    /// `workspace`
    case workspace
    /// `publish`
    case publish
    /// `remove`
    case remove
    /// `Partial.write`
    case write
    /// `Partial.read`
    case read
    /// `Partial.truncate`
    case truncate
    /// `Partial.synchronize`
    case synchronize
    /// `Partial.persist`
    case persist
    /// `Partial.close` or `Partial.finish`
    case close
  }

  /// One call, successful or not.
  public struct Call: Sendable, Hashable {
    /// The operation that was called.
    public let operation: Operation
    /// The partial of the call; `nil` for calls without a partial.
    public let key: PartialKey?
    /// The bytes that were written or read, or that a truncation kept (from 0).
    public let range: ByteRange?
  }

  /// What publishing does when the destination exists.
  public enum Conflict: Sendable, Hashable {
    /// The existing file is replaced.
    case replace
    /// The new file gets a number in its name.
    case keepBoth
    /// Publishing fails with `.alreadyExists`.
    case fail
    /// The existing file is used, and nothing is fetched.
    case reuse
  }

  struct Stored: Sendable {
    var bytes: [UInt8] = []
    var durable: [UInt8] = []
    /// The opening that holds the partial; `nil` when it is closed.
    var holder: Int?
    /// Whether the partial outlives its opening.
    var isNamed = false
  }

  struct State: Sendable {
    var plan = FaultPlan<Operation>()
    var calls: [Call] = []
    var partials: [PartialKey: Stored] = [:]
    var published: [String: [UInt8]] = [:]
    /// The numbers of the published files, which tell them from earlier ones at their paths.
    var numbers: [String: UInt64] = [:]
    var lastNumber: UInt64 = 0
    var directories: Set<String> = []
    var notes: Set<String> = []
    /// The openings that are not closed.
    var open: Set<Int> = []
    /// The number of openings so far; each has its own number.
    var openings = 0
    /// The targets of publications in progress.
    var reserved: Set<String> = []

    func isTaken(_ path: String) -> Bool {
      published[path] != nil || directories.contains(path) || reserved.contains(path)
    }

    /// Removes what was published at a path.
    mutating func forget(_ path: String) {
      (published[path], numbers[path]) = (nil, nil)
      if directories.remove(path) != nil { published = published.filter { !$0.key.hasPrefix(path + "/") } }
    }

    /// Chooses and reserves the path for a publication.
    mutating func reserve(
      _ directory: String, _ name: String, _ suffixes: [String], _ conflict: Conflict
    ) throws(DownloadError) -> String {
      func isTaken(_ path: String) -> Bool { self.isTaken(path) || suffixes.contains { self.isTaken(path + $0) } }
      var target = directory + name
      if isTaken(target) {
        switch conflict {
        case .replace, .reuse: break
        case .keepBoth:
          var number = 2
          while isTaken("\(directory)\(number) \(name)") { number += 1 }
          target = "\(directory)\(number) \(name)"
        case .fail:
          throw DownloadError(
            .alreadyExists, "\(target) exists already: choose another name", stage: "FakeStorage")
        }
      }
      reserved.insert(target)
      return target
    }
  }

  /// The fictitious folder of published artifacts.
  public let root = "/fake-storage"
  /// The name in messages.
  public let name: String
  let state = Watched(State())
  let conflict: Conflict
  let workspaces: String?
  /// The storage is in memory.
  public var mayBlock: Bool { false }
  /// The location that downloads belong to, as given to the initializer.
  public let location: String?

  /// Creates an empty storage.
  ///
  /// - Parameters:
  ///   - conflict: What publishing does when the destination exists.
  ///   - workspaces: An existing folder for the workspaces of steps. Without it steps work in memory.
  ///   - location: The location that downloads belong to.
  ///   - name: The name in messages.
  public init(
    onConflict conflict: Conflict = .replace, workspaces: String? = nil, location: String? = nil,
    name: String = "FakeStorage"
  ) {
    self.location = location
    self.conflict = conflict
    self.workspaces = workspaces
    self.name = name
  }

  /// Makes `times` calls of an operation fail, starting with call number `call`, counted from 1 over all downloads
  /// since the storage was made. A failing call has no effect.
  public func fail(_ operation: Operation, at call: Int = 1, times: Int = 1, with error: DownloadError) {
    state.update { $0.plan.fail(operation, at: call, times: times, with: error) }
  }

  /// The calls so far, in order.
  public var calls: [Call] { state.value.calls }
  /// The bytes of the published files by their path below the root.
  public var published: [String: [UInt8]] { state.value.published }
  /// The bytes of the partials that exist.
  public var partials: [PartialKey: [UInt8]] { state.value.partials.mapValues(\.bytes) }
  /// The number of open partials.
  public var openPartials: Int { state.value.open.count }

  /// Waits until an operation was called at least `count` times. Returns early when the waiting task is cancelled.
  public func calls(of operation: Operation, atLeast count: Int) async {
    await state.wait { $0.plan.count(operation) >= count }
  }

  /// Loses all bytes that were not synchronized, like a power failure, and closes every partial.
  public func losePower() {
    state.update { state in
      // Earlier openings belong to a process that is dead, so they become invalid.
      state.partials = state.partials.filter(\.value.isNamed).mapValues {
        Stored(bytes: $0.durable, durable: $0.durable, isNamed: true)
      }
      state.open = []
    }
  }

  /// Changes the bytes of a partial like a failing disk, without a recorded call. Has no effect without such a partial.
  public func damage(_ key: PartialKey, _ change: (inout [UInt8]) -> Void) {
    state.update { state in
      guard var stored = state.partials[key] else { return }
      change(&stored.bytes)
      state.partials[key] = stored
    }
  }

  /// The bytes of an artifact of this storage, published or staged; `nil` when it does not exist.
  public func bytes(of artifact: Artifact) -> [UInt8]? {
    switch artifact.location {
    case .memory(let bytes): bytes
    case .remote: nil
    case .path(let path): relative(path).flatMap { state.value.published[$0] }
    }
  }

  func enter(_ operation: Operation, _ key: PartialKey? = nil, _ range: ByteRange? = nil) throws(DownloadError) {
    let error = state.update { state -> DownloadError? in
      state.calls.append(Call(operation: operation, key: key, range: range))
      return state.plan.next(operation)
    }
    if let error { throw error }
  }

  /// The path below the root; `nil` for a path elsewhere.
  func relative(_ path: String) -> String? {
    path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : nil
  }
}

extension FakeStorage {
  /// Opens a partial in memory, for this caller only until it is closed. A new partial then loses its bytes unless they
  /// were persisted or synchronized.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try enter(.openPartial, key)
    let opening = try state.update { state throws(DownloadError) in
      if state.partials[key]?.holder != nil {
        throw DownloadError(.inUse, "the partial of \(key.id) is open already: close it first", stage: name)
      }
      state.openings += 1
      state.open.insert(state.openings)
      if isNew { state.partials[key] = nil }
      state.partials[key, default: Stored(isNamed: !isNew)].holder = state.openings
      return state.openings
    }
    return FakePartial(storage: self, key: key, opening: opening)
  }

  /// Removes a partial and its workspace. Openings of it become invalid.
  public func removePartial(_ key: PartialKey) async throws {
    try enter(.removePartial, key)
    state.update { state in _ = state.partials.removeValue(forKey: key) }
    if let path = workspacePath(key), FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
  }

  /// Returns the workspace of a partial; `nil` when the storage has no folder for workspaces.
  public func workspace(_ key: PartialKey) async throws -> String? {
    try enter(.workspace, key)
    guard let path = workspacePath(key) else { return nil }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func workspacePath(_ key: PartialKey) -> String? {
    // An id can be any text: its bytes in hexadecimal are always a safe name.
    workspaces.map { folder in
      "\(folder)/" + key.id.rawValue.utf8.map { String($0, radix: 16) }.joined() + "-\(key.generation)"
    }
  }
}
