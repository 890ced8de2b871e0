import DownpipeCore
import DownpipePOSIX
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The folders of a store: its own, which are private to the user, and those that it publishes in. Copies of a store
/// share one object.
final class StoreFolders: Sendable {
  /// The name of the store's own folder in the root.
  static let ownName = ".downpipe"
  /// The number of destination folders that are held open at most.
  private static let maximumOpen = 8

  let root: String
  /// `<root>/.downpipe`.
  let own: String
  let partials: String
  let work: String
  let durability: Durability
  let system: FileSystem

  /// An open destination folder, and its status when it was opened.
  private struct Known {
    let folder: OpenFolder
    let status: FileStatus
  }

  private struct State {
    /// The number of open partials.
    var users = 0
    /// The claims of open partials, by the path of the partial.
    var claims: [String: PartialClaim] = [:]
    /// The open destination folders, by their path below the root.
    var destinations: [String: Known] = [:]
    var isPrivate = false
    /// The result of ``name()``.
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

  // MARK: The store's own folder

  /// The entry of ``name()``: a symbolic link, since creating one is atomic and never replaces another, or a file where
  /// there are no links.
  private var nameEntry: ClaimEntry { ClaimEntry(path: own + "/name", system: system) }

  /// The store's name, if its folder has one; `nil` also if it cannot be read.
  func presentName() -> String? {
    if let known = state.withLock({ $0.name }) { return known }
    guard let name = try? nameEntry.text(), !name.isEmpty else { return nil }
    state.withLock { $0.name = name }
    return name
  }

  /// The store's name, which is random and moves with the folder.
  func name() throws(DownloadError) -> String {
    if let known = state.withLock({ $0.name }) { return known }
    do {
      return try reporting("read or make", nameEntry.path) {
        for _ in 0..<2 {
          if let name = try nameEntry.text(), !name.isEmpty {
            state.withLock { $0.name = name }
            return name
          }
          // If another process creates the entry first, its name is used. The name is flushed, since the ledger finds a
          // download's files by it.
          try making(own) { _ = try nameEntry.create(DownloadID().rawValue) }
          // It may be a file.
          try? OpenFile(reading: nameEntry.path, followingLink: false, system: system).flush()
          try? OpenFolder(own, system: system).flush(.power)
        }
        throw DownloadError(
          .storage, "\(nameEntry.path) is not the name of a folder: if it stays so, delete it to get a new one")
      }
    } catch {
      throw DownloadError(error, as: .storage)
    }
  }

  /// Runs `body`, which needs a folder that nearly always exists. The folder is created only after `body` failed for
  /// its absence, which saves checking for it in every call.
  func making<Value>(_ folder: String, _ body: () throws -> Value) throws -> Value {
    for _ in 0..<8 {
      do {
        let value = try body()
        makePrivate()
        return value
      } catch let error as SystemError where error.code == ENOENT {}
      // Another process that removes empty folders at the same time can cause this several times.
      try OpenFolder.makeFolders(folder, privateBelow: root, durability: durability, system: system)
    }
    throw SystemError(ENOENT)
  }

  /// Runs system calls for a file in the store's own folder: if this one is denied, so is every other, and the fault is the
  /// machine's.
  func reporting<Value>(_ action: String, _ path: String, _ body: () throws -> Value) throws -> Value {
    do { return try DownpipePOSIX.reporting(action, path, body) } catch var error as DownloadError
      where error.code == .permission
    {
      error.scope = .machine
      throw error
    }
  }

  /// Once per store: removes the access of other users to the store's own folder, which earlier versions granted. A
  /// folder that another user owns stays as it is.
  private func makePrivate() {
    let wasPrivate = state.withLock { state in
      defer { state.isPrivate = true }
      return state.isPrivate
    }
    guard !wasPrivate,
      let folder = try? OpenFile(Entry(own), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, system: system),
      let status = try? folder.status(), status.owner == geteuid(), status.permissions & 0o077 != 0
    else { return }
    try? folder.setPermissions(status.permissions & 0o700)
  }

  /// The permissions that the process's umask gives to new files. No system call returns the umask without changing it.
  func permissionsOfNewFiles() throws(SystemError) -> mode_t {
    let file: OpenFile
    do {
      file = try OpenFile.unnamed(in: partials, system: system)
    } catch {
      guard error.saysNoUnnamedFiles else { throw error }
      if let umask = try umaskOfProcess() { return 0o666 & ~umask }
      let name = Entry(partials + "/\(DownloadID()).new")
      file = try OpenFile(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, system: system)
      try? system.unlink(name)
    }
    return try file.status().permissions
  }

  /// The umask as Linux shows it; `nil` on other systems.
  private func umaskOfProcess() throws(SystemError) -> mode_t? {
    guard let file = try OpenFile.ifPresent(Entry("/proc/self/status"), O_RDONLY, system: system) else { return nil }
    let lines = String(decoding: try file.read(8192, at: 0), as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix("Umask:") }?.split(separator: "\t").last.flatMap { mode_t($0, radix: 8) }
  }

  // MARK: Destinations

  /// Counts an open partial.
  func enter() { state.withLock { $0.users += 1 } }

  /// The claim on a partial that is open in this store.
  func claim(on partial: String) -> PartialClaim? { state.withLock { $0.claims[partial] } }

  /// Keeps the claim of an open partial for ``claim(on:)``.
  func hold(_ partial: String, by claim: PartialClaim) { state.withLock { $0.claims[partial] = claim } }

  /// Forgets a claim that is about to be released.
  func letGo(_ partial: String, by claim: PartialClaim) {
    state.withLock { state in
      if state.claims[partial] === claim { state.claims[partial] = nil }
    }
  }

  /// Counts a closed partial. After the last one the destination folders are closed, so that the file system can be
  /// unmounted.
  func leave() {
    // Returned from the closure, so that the folders are closed outside of the lock.
    _ = state.withLock { state in
      state.users -= 1
      defer { if state.users == 0 { state.destinations = [:] } }
      return state.users == 0 ? state.destinations : [:]
    }
  }

  /// Opens a folder below the root, and creates it if it is missing.
  ///
  /// An open folder is used again only while its path still leads to it.
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
