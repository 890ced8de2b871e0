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

/// The bytes of an unfinished download in a file, which is created with the first byte.
///
/// A new download has a file without a name, where the file system supports that: it needs no claim, and is deleted
/// when it is closed. ``persist()`` claims the name and gives it to the file; the claim is held until the partial is
/// closed.
final class FilePartial: Partial {
  let path: String
  let folders: StoreFolders
  /// The lock also keeps a late write from a descriptor that is closed and already belongs to another file.
  private let state: Mutex<State>

  struct State {
    enum Stage { case open, finished, closed }
    var stage = Stage.open
    /// `nil` before the first byte and after closing.
    var file: OpenFile?
    /// The claim on the name; `nil` for a file without one.
    var claim: PartialClaim?
    /// The end of the last byte written. Other programs may have changed the length of the file.
    var length: Int64 = 0
    /// Whether the file's name may not be on the disk yet.
    var nameIsNew = true
    /// Whether the file has another name, too (a hard link): a write would change that one.
    var isShared = false
    /// Whether other bytes are stored under the name, which a finished file without a name does not replace.
    var hasOthers = false
  }

  var system: FileSystem { folders.system }
  private var durability: Durability { folders.durability }

  /// - Parameters:
  ///   - file: The file with the name; `nil` when there is none.
  ///   - length: Its length.
  ///   - claim: The claim on the name; `nil` for a new download.
  ///   - isShared: Whether the file has another name, too.
  init(
    _ path: String, file: OpenFile? = nil, length: Int64 = 0, claim: PartialClaim? = nil, isShared: Bool = false,
    folders: StoreFolders
  ) {
    self.path = path
    self.folders = folders
    state = Mutex(State(file: file, claim: claim, length: length, isShared: isShared))
    if let claim { folders.hold(path, by: claim) }
    folders.enter()
  }

  deinit { try? close() }

  // MARK: Bytes

  func size() throws -> Int64 {
    try withFile("read the size of") { file in try file?.status().size ?? 0 }
  }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    try withState("write") { state in
      guard state.stage == .open else { throw SystemError(EBADF) }
      if state.file == nil, bytes.byteCount == 0 { return }
      try unshare(&state, keeping: state.length)
      let file = try state.file ?? begin(&state)
      try checkLength(of: file, in: state)
      try file.write(bytes, at: offset)
      state.length = max(state.length, offset + Int64(bytes.byteCount))
    }
  }

  func read(at offset: Int64, count: Int) throws -> [UInt8] {
    try withFile("read") { file in
      guard let file else { return [] }
      // Allocates memory only for the bytes that exist; `count` may be larger.
      let available = try file.status().size - max(0, offset)
      let count = Int(min(Int64(max(0, count)), max(0, available)))
      return count > 0 ? try file.read(count, at: offset) : []
    }
  }

  /// Reads through a duplicate of the descriptor, so that no write waits for the lock meanwhile.
  func read(at offset: Int64, into buffer: inout MutableRawSpan) throws -> Int {
    guard let copy = try withFile("read", { try $0?.duplicate() }) else { return 0 }
    return try buffer.withUnsafeMutableBytes { target in
      try reporting("read", path) { () throws(SystemError) in try copy.read(into: target, at: offset) }
    }
  }

  func truncate(to size: Int64) throws {
    try withState("change the size of") { state in
      guard state.stage == .open else { throw SystemError(EBADF) }
      if state.file == nil, size == 0 { return }
      try unshare(&state, keeping: size)
      try (state.file ?? begin(&state)).truncate(to: size)
      state.length = size
    }
  }

  /// Gives the partial a file of its own before it is changed, if its file has another name, too: a hard link that another
  /// program has made, or the published file, when the process or the machine stopped while it was published.
  private func unshare(_ state: inout State, keeping count: Int64) throws {
    guard state.isShared, let shared = state.file else { return }
    try state.claim?.check()
    let copy = Entry(path + PartialClaim.copySuffix)
    let file = try system.makeRoom(at: copy) { () throws(SystemError) in
      try OpenFile(copy, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, system: system)
    }
    do {
      try shared.forEachBlock(of: Self.bufferSize, upTo: count) { block, offset in
        try file.write(block, at: offset)
        return true
      }
      // The ledger has bytes that the new file must not lose.
      if durability == .power { try file.flush() }
      try system.rename(copy, to: Entry(path))
    } catch {
      // Half a copy would keep a full disk full.
      try? system.unlink(copy)
      throw error
    }
    state.file = file
    state.isShared = false
    state.nameIsNew = true
  }

  /// Checks before each write that no other program has cut the file: the write would lengthen it again, with zeros where
  /// its bytes were. A file without a name is out of their reach.
  private func checkLength(of file: OpenFile, in state: State) throws {
    guard state.length > 0, state.claim != nil else { return }
    let size = try file.status().size
    guard size < state.length else { return }
    throw DownloadError(
      .storage,
      "another program has cut \(path): it has \(size) of the \(state.length) bytes written to it. Resume the download "
        + "to fetch the file again")
  }

  // MARK: Durability

  var isNamed: Bool { state.withLock { $0.claim != nil || $0.hasOthers } }

  func persist() throws {
    try withState("give a name to") { state in try persist(&state) }
  }

  func synchronize() async throws {
    let isEmpty = try withState("flush") { state in
      guard state.stage != .closed else { throw SystemError(EBADF) }
      guard let file = state.file else { return true }
      if state.stage == .open { try checkLength(of: file, in: state) }
      try persist(&state)
      return false
    }
    guard durability == .power, !isEmpty else { return }
    try await BlockingThreads.run { [self] _ in
      // A duplicate, so that no write waits for the lock while the disk works. It reports the errors of earlier writes,
      // too, since both descriptors share the open file.
      let (copy, nameIsNew) = try withState("flush") { state in
        guard let file = state.file else { throw SystemError(EBADF) }
        return (try file.duplicate(), state.nameIsNew)
      }
      try reporting("flush", path) { () throws(SystemError) in
        try copy.flush()
        try copy.close()
        if nameIsNew { try OpenFolder(PathText.split(path).folder, system: system).flush(durability) }
      }
      if nameIsNew { state.withLock { $0.nameIsNew = false } }
    }
  }

  // MARK: Ending

  func finish() throws {
    try withState("close") { state in
      guard state.stage == .open else { return }
      state.stage = .finished
      // An earlier attempt has left them, or a process that ended before the ledger knew of them.
      if state.claim == nil { state.hasOthers = (try? system.statusIfPresent(Entry(path))) != nil }
      guard let file = state.file else { return }
      // Steps may publish the file as it is. Until then the store's folder keeps other users out.
      if state.claim != nil { try file.setPermissions(try folders.permissionsOfNewFiles()) }
      // Network file systems report lost bytes at closing, and publishing needs the descriptor.
      try file.duplicate().close()
    }
  }

  func close() throws {
    let (file, claim, wasOpen) = state.withLock { state in
      defer {
        state.stage = .closed
        state.file = nil
        state.claim = nil
      }
      return (state.file, state.claim, state.stage != .closed)
    }
    guard wasOpen else { return }
    defer {
      // After closing the file, so that this process cannot write to it any more.
      if let claim {
        folders.letGo(path, by: claim)
        claim.release()
      }
      folders.leave()
    }
    if let file { try reporting("close", path) { () throws(SystemError) in try file.close() } }
  }

  func artifact(name: String, mediaType: String?) throws -> Artifact {
    let size = try withState("read the size of") { state in
      state.stage == .closed ? try system.status(Entry(path)).size : state.length
    }
    return Artifact(location: .path(path), name: name, size: .known(size), mediaType: mediaType)
  }

  // MARK: The file

  /// The file to publish; `nil` after closing. The file of an empty download is created now.
  func held() throws -> HeldFile? {
    try withState("read the status of") { state in
      guard state.stage != .closed else { return nil }
      let file = try state.file ?? begin(&state)
      try state.claim?.check()
      if state.claim != nil, state.stage == .open {
        try file.setPermissions(try folders.permissionsOfNewFiles())
      }
      return HeldFile(file: file, status: try file.status(), name: state.claim == nil ? nil : path, partial: self)
    }
  }

  /// Creates the file: one without a name if the name is not claimed and the file system supports it.
  private func begin(_ state: inout State) throws -> OpenFile {
    if state.claim == nil {
      do {
        let file = try folders.making(PathText.split(path).folder) {
          try OpenFile.unnamed(in: folders.partials, system: system)
        }
        state.file = file
        return file
      } catch let error as SystemError where error.saysNoUnnamedFiles {}
    }
    return try makeNamed(&state)
  }

  private func makeNamed(_ state: inout State) throws -> OpenFile {
    try claimName(&state) {
      // Replaces a file that an earlier download with the same key has left.
      try system.makeRoom(at: Entry(path)) { () throws(SystemError) in
        try OpenFile(Entry(path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, system: system)
      }
    }
  }

  private func persist(_ state: inout State) throws {
    guard state.stage != .closed else { throw SystemError(EBADF) }
    guard let file = state.file else {
      _ = try makeNamed(&state)
      return
    }
    if let claim = state.claim { return try claim.check() }
    let isFinished = state.stage == .finished
    _ = try claimName(&state) {
      if !isFinished { try file.setPermissions(0o600) }
      try system.makeRoom(at: Entry(path)) { () throws(SystemError) in
        try system.link(file.descriptor, to: Entry(path))
      }
      return file
    }
  }

  /// Claims the name and gives it to a file: both, or neither.
  private func claimName(_ state: inout State, _ body: () throws -> OpenFile) throws -> OpenFile {
    try folders.making(PathText.split(path).folder) {
      let isHeld = state.claim != nil
      let claim =
        try state.claim ?? PartialClaim.take(path, keepingBytes: false, durability: durability, system: system)
      do {
        let file = try body()
        if !isHeld { folders.hold(path, by: claim) }
        state.claim = claim
        state.file = file
        state.nameIsNew = true
        return file
      } catch {
        if !isHeld { claim.release() }
        throw error
      }
    }
  }

  /// Renames another file to this partial's name and continues with it.
  ///
  /// - Returns: False for anything but a file, and for a file on another file system.
  func adopt(_ other: String) throws -> Bool {
    try withState("take over a file as") { state in
      guard state.stage == .open else { throw SystemError(EBADF) }
      let status = try system.status(Entry(other))
      guard status.kind == .file else { return false }
      do {
        _ = try claimName(&state) {
          let new = try OpenFile(Entry(other), O_RDWR | O_NOFOLLOW, system: system)
          // The permissions of a partial; finish() sets those of a new file.
          try new.setPermissions(0o600)
          try system.rename(Entry(other), to: Entry(path))
          return new
        }
      } catch let error as SystemError where error.code == EXDEV {
        return false
      }
      state.length = status.size
      state.isShared = false
      return true
    }
  }

  // MARK: -

  /// Runs `body` with the file, which is `nil` before the first byte.
  func withFile<Value>(_ action: String, _ body: (OpenFile?) throws -> Value) throws -> Value {
    try withState(action) { state in
      guard state.stage != .closed else { throw SystemError(EBADF) }
      return try body(state.file)
    }
  }

  private func withState<Value>(_ action: String, _ body: (inout State) throws -> Value) throws -> Value {
    try folders.reporting(action, path) { try state.withLock { state in try body(&state) } }
  }
}
