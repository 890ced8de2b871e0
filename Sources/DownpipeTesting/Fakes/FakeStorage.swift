public import DownpipeCore
import Foundation

/// A storage in memory that records what is done with it and fails where a test wants it to.
///
/// ```swift
/// let storage = FakeStorage()
/// storage.fail(.write, at: 3, with: DownloadError(.noSpace, "the disk is full"))
/// let downloader = try await Downloader { source; storage }
/// _ = try? await downloader.add("https://example.org/films/film.mkv").value
/// #expect(storage.published["films/film.mkv"] == bytes)
/// #expect(storage.calls.map(\.operation) == [.openPartial, .write, .write, .write, .close])
/// ```
/// Published artifacts have a made-up path below ``root``, at which there is nothing on the disk:
/// ``published`` and ``bytes(of:)`` have their bytes. Safe to use from any thread.
public final class FakeStorage: Storage {
  /// What can be done with a storage, and can fail.
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
    /// `Partial.close`, or `Partial.finish`, which closes but for letting go
    case close
  }

  /// One call, the failed ones too.
  public struct Call: Sendable, Hashable {
    /// What was done.
    public let operation: Operation
    /// To which partial, where it was one.
    public let key: PartialKey?
    /// The bytes that were written, read, or left by a truncation (from 0).
    public let range: ByteRange?
  }

  /// What happens when the destination is taken.
  public enum Conflict: Sendable, Hashable {
    /// What is there is replaced.
    case replace
    /// The new one gets a number in its name.
    case keepBoth
    /// Publishing fails with `.alreadyExists`.
    case fail
    /// What is there is used, and nothing is fetched.
    case reuse
  }

  struct Stored: Sendable {
    var bytes: [UInt8] = []
    var durable: [UInt8] = []
    /// The opening that holds it, if one does.
    var holder: Int?
    /// Whether it outlives its opening.
    var isNamed = false
  }

  struct State: Sendable {
    var plan = FaultPlan<Operation>()
    var calls: [Call] = []
    var partials: [PartialKey: Stored] = [:]
    var published: [String: [UInt8]] = [:]
    var directories: Set<String> = []
    var notes: Set<String> = []
    /// The openings that were not closed.
    var open: Set<Int> = []
    /// The openings there were: each has a number of its own.
    var openings = 0
    /// Targets of publications under way.
    var reserved: Set<String> = []

    func isTaken(_ path: String) -> Bool {
      published[path] != nil || directories.contains(path) || reserved.contains(path)
    }

    /// Removes what was published at a path.
    mutating func forget(_ path: String) {
      published[path] = nil
      if directories.remove(path) != nil { published = published.filter { !$0.key.hasPrefix(path + "/") } }
    }

    /// Decides where something is published.
    mutating func reserve(_ directory: String, _ name: String, _ conflict: Conflict) throws(DownloadError) -> String {
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
            .alreadyExists, "\(target) is there already: choose another name", stage: "FakeStorage")
        }
      }
      reserved.insert(target)
      return target
    }
  }

  /// The made-up folder that published artifacts lie in.
  public let root = "/fake-storage"
  /// The name in messages.
  public let name: String
  let state = Watched(State())
  let conflict: Conflict
  let workspaces: String?
  /// The place that destinations are relative to, as it was given.
  public let location: String?

  /// Makes an empty storage.
  ///
  /// - Parameters:
  ///   - conflict: what happens when a destination is taken.
  ///   - workspaces: an existing folder for the workspaces of steps; without it steps work in memory.
  ///   - location: what it says of its place; downloads belong to one.
  public init(
    onConflict conflict: Conflict = .replace, workspaces: String? = nil, location: String? = nil,
    name: String = "FakeStorage"
  ) {
    self.location = location
    self.conflict = conflict
    self.workspaces = workspaces
    self.name = name
  }

  /// Lets `times` calls of an operation fail, the first of them the `call`th since the storage was made,
  /// counted from 1 over all downloads. Nothing is done by a call that fails.
  public func fail(_ operation: Operation, at call: Int = 1, times: Int = 1, with error: DownloadError) {
    state.update { $0.plan.fail(operation, at: call, times: times, with: error) }
  }

  /// What was done, in order.
  public var calls: [Call] { state.value.calls }
  /// The published files by their path below the root.
  public var published: [String: [UInt8]] { state.value.published }
  /// The partials there are.
  public var partials: [PartialKey: [UInt8]] { state.value.partials.mapValues(\.bytes) }
  /// How many partials are open at the moment.
  public var openPartials: Int { state.value.open.count }

  /// Waits until an operation was called at least `count` times. Returns early when the waiting task is cancelled.
  public func calls(of operation: Operation, atLeast count: Int) async {
    await state.wait { $0.plan.count(operation) >= count }
  }

  /// Loses every byte that was not synchronised, as a loss of power may, and closes every partial.
  public func losePower() {
    state.update { state in
      // An opening of before belongs to a process that is dead: it can do nothing more.
      state.partials = state.partials.filter(\.value.isNamed).mapValues {
        Stored(bytes: $0.durable, durable: $0.durable, isNamed: true)
      }
      state.open = []
    }
  }

  /// Changes the bytes of a partial behind everybody's back, as a failing disk does; nothing when there is none.
  public func damage(_ key: PartialKey, _ change: (inout [UInt8]) -> Void) {
    state.update { state in
      guard var stored = state.partials[key] else { return }
      change(&stored.bytes)
      state.partials[key] = stored
    }
  }

  /// The bytes of a file that this storage gave out, published or not; `nil` when there is no such file.
  public func bytes(of artifact: Artifact) -> [UInt8]? {
    switch artifact.location {
    case .memory(let bytes): bytes
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
  /// Opens a partial in memory, and holds it until it is closed. The bytes of a new one are lost then, unless they were
  /// persisted or synchronised.
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

  /// Forgets a partial, and deletes its workspace. An opening of it can do nothing more.
  public func removePartial(_ key: PartialKey) async throws {
    try enter(.removePartial, key)
    state.update { state in _ = state.partials.removeValue(forKey: key) }
    if let path = workspacePath(key), FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
  }

  /// A folder below the one given for workspaces, or none.
  public func workspace(_ key: PartialKey) async throws -> String? {
    try enter(.workspace, key)
    guard let path = workspacePath(key) else { return nil }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func workspacePath(_ key: PartialKey) -> String? {
    // An id is any text: only its bytes in hexadecimal are a safe name for certain.
    workspaces.map { folder in
      "\(folder)/" + key.id.rawValue.utf8.map { String($0, radix: 16) }.joined() + "-\(key.generation)"
    }
  }
}
