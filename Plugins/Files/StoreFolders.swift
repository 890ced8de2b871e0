import DownpipeCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The folders of a store: its own, which are for this user alone, and those that it publishes in. Copies of a store
/// share it.
final class StoreFolders: Sendable {
  /// The folder below the root that is the store's own.
  static let ownName = ".downpipe"
  /// The most destination folders that are held open.
  private static let maximumOpen = 8

  let root: String
  /// The root's folder for everything of the store's.
  let own: String
  let partials: String
  let work: String
  let durability: Durability
  let system: FileSystem

  /// A destination folder, and what it was when it was opened.
  private struct Known {
    let folder: OpenFolder
    let status: FileStatus
  }

  private struct State {
    /// The partials that are open.
    var users = 0
    /// By the path of the partial.
    var claims: [String: PartialClaim] = [:]
    /// By their path below the root.
    var destinations: [String: Known] = [:]
    var isPrivate = false
    /// The store's name, once it is known.
    var name: String?
  }

  private let state = Mutex(State())

  init(root: String, durability: Durability, system: FileSystem) {
    self.root = root
    own = PathText.join(root, Self.ownName)
    partials = own + "/partials"
    work = own + "/work"
    self.durability = durability
    self.system = system
  }

  // MARK: Its own

  /// The store's name: a random one, which moves with the folder. It is the target of a symbolic link, which appears
  /// whole and only where there is none.
  func name() -> String? {
    if let known = state.withLock({ $0.name }) { return known }
    let link = Entry(own + "/name")
    for _ in 0..<2 {
      if let target = try? system.target(ofLink: link), target.count > 1 {
        let name = String(decoding: target.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        state.withLock { $0.name = name }
        return name
      }
      // Another process may be faster: its name counts then. A name that is lost would hide what the ledger knows.
      try? making(own) { try system.makeLink(link, to: Array(DownloadID().rawValue.utf8CString)) }
      try? OpenFolder(own, system: system).flush(.power)
    }
    return nil
  }

  /// Does something in a folder that is nearly always there: it is made only after the first failure, which
  /// saves the hot path every question about it.
  func making<Value>(_ folder: String, _ body: () throws -> Value) throws -> Value {
    for _ in 0..<8 {
      do {
        let value = try body()
        makePrivate()
        return value
      } catch let error as SystemError where error.code == ENOENT {}
      // Another process that empties folders at the same time can make this fail again, but not for ever.
      try OpenFolder.makeFolders(folder, privateBelow: root, durability: durability, system: system)
    }
    throw SystemError(ENOENT)
  }

  /// Closes the store's own folder to other users, as earlier versions did not; once. One of another user is left alone.
  private func makePrivate() {
    let wasPrivate = state.withLock { state in
      defer { state.isPrivate = true }
      return state.isPrivate
    }
    guard !wasPrivate, let folder = try? system.open(Entry(own), O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { return }
    if let status = try? system.status(folder), status.owner == geteuid(), status.permissions & 0o077 != 0 {
      try? system.setPermissions(folder, status.permissions & 0o700)
    }
    try? system.close(folder)
  }

  /// The permissions that a new file gets, by the process's umask. No call tells that without changing it.
  func permissionsOfNewFiles() throws(SystemError) -> mode_t {
    let file: CInt
    do {
      file = try system.openUnnamed(in: partials)
    } catch {
      guard error.saysNoUnnamedFiles else { throw error }
      if let umask = try umaskOfProcess() { return 0o666 & ~umask }
      let name = Entry(partials + "/\(DownloadID()).new")
      file = try system.open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
      try? system.unlink(name)
    }
    defer { try? system.close(file) }
    return try system.status(file).permissions
  }

  /// What the system shows of it; `nil` where it shows nothing.
  private func umaskOfProcess() throws(SystemError) -> mode_t? {
    guard let file = try system.openIfPresent(Entry("/proc/self/status"), O_RDONLY) else { return nil }
    defer { try? system.close(file) }
    var bytes = [UInt8](repeating: 0, count: 8192)
    var span = bytes.mutableSpan
    let count = try span.withUnsafeMutableBytes { buffer throws(SystemError) in
      try system.read(file, into: buffer, at: 0)
    }
    let lines = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix("Umask:") }?.split(separator: "\t").last.flatMap { mode_t($0, radix: 8) }
  }

  // MARK: Destinations

  /// A partial was opened.
  func enter() { state.withLock { $0.users += 1 } }

  /// The claim on a partial that this store has open; `nil` when it has not.
  func claim(on partial: String) -> PartialClaim? { state.withLock { $0.claims[partial] } }

  /// A partial that is open has been claimed.
  func hold(_ partial: String, by claim: PartialClaim) { state.withLock { $0.claims[partial] = claim } }

  /// The claim on a partial is about to be given back.
  func letGo(_ partial: String, by claim: PartialClaim) {
    state.withLock { state in
      if state.claims[partial] === claim { state.claims[partial] = nil }
    }
  }

  /// A partial was closed. With the last one the destinations are closed, so that a file system can be unmounted.
  func leave() {
    // Closing them waits for no lock.
    _ = state.withLock { state in
      state.users -= 1
      defer { if state.users == 0 { state.destinations = [:] } }
      return state.users == 0 ? state.destinations : [:]
    }
  }

  /// The folder below the root that something is published in, made if it is missing.
  ///
  /// One that is open already counts only while its path still leads to it.
  func destination(_ components: ArraySlice<String>) throws -> OpenFolder? {
    let name = components.joined(separator: "/")
    if let known = state.withLock({ $0.destinations[name] }) {
      let isRoot = components.isEmpty
      if let status = try? system.status(Entry(known.folder.path), following: isRoot), status.isSame(as: known.status) {
        return known.folder
      }
      state.withLock { $0.destinations[name] = nil }
    }
    guard
      let folder = try OpenFolder.open(
        root: root, components: Array(components), creating: true, durability: durability, system: system)
    else { return nil }
    if let status = try? system.status(folder.descriptor) {
      state.withLock { state in
        guard state.users > 0 else { return }
        if state.destinations.count >= Self.maximumOpen { state.destinations.removeAll() }
        state.destinations[name] = Known(folder: folder, status: status)
      }
    }
    return folder
  }
}
