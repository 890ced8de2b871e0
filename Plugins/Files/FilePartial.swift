import DownpipeCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The bytes of an unfinished download in a file, which is made with the first byte.
///
/// A new download has a file without a name, where the file system can do that: it costs no claim, and is gone when it
/// is closed. ``persist()`` claims the name and gives it to the file. From then on the claim is held until closing.
final class FilePartial: Partial {
  let path: String
  let folders: StoreFolders
  /// The lock keeps a write that comes too late from a descriptor that already belongs to another file.
  private let state: Mutex<State>

  struct State {
    enum Stage { case open, finished, closed }
    var stage = Stage.open
    /// `nil` before the first byte and after closing.
    var descriptor: CInt?
    /// The claim on the name; `nil` for a file without one.
    var claim: PartialClaim?
    /// How far it was written; the file may be changed by others.
    var length: Int64 = 0
    /// Whether the file's name may not be on the disk yet.
    var nameIsNew = true
  }

  var system: FileSystem { folders.system }
  private var durability: Durability { folders.durability }

  /// - Parameters:
  ///   - descriptor: the named file; `nil` when there is none.
  ///   - length: its length.
  ///   - claim: the claim on the name; `nil` for a new download.
  init(_ path: String, descriptor: CInt? = nil, length: Int64 = 0, claim: PartialClaim? = nil, folders: StoreFolders) {
    self.path = path
    self.folders = folders
    state = Mutex(State(descriptor: descriptor, claim: claim, length: length))
    if let claim { folders.hold(path, by: claim) }
    folders.enter()
  }

  deinit { try? close() }

  // MARK: Bytes

  func size() throws -> Int64 {
    try withFile("look at") { file in try file.map { file throws(SystemError) in try system.status(file).size } ?? 0 }
  }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    try withState("write") { state in
      guard state.stage == .open else { throw SystemError(EBADF) }
      if state.descriptor == nil, bytes.byteCount == 0 { return }
      let file = try state.descriptor ?? begin(&state)
      try bytes.withUnsafeBytes { buffer throws(SystemError) in try system.write(file, buffer, at: offset) }
      state.length = max(state.length, offset + Int64(bytes.byteCount))
    }
  }

  func read(at offset: Int64, count: Int) throws -> [UInt8] {
    try withFile("read") { file in
      guard let file else { return [] }
      // No more room than there are bytes, whatever is asked for.
      let available = try system.status(file).size - max(0, offset)
      let count = Int(min(Int64(max(0, count)), max(0, available)))
      guard count > 0 else { return [] }
      var failure: SystemError?
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        do throws(SystemError) {
          filled = try system.read(file, into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      return bytes
    }
  }

  func truncate(to size: Int64) throws {
    try withState("change the size of") { state in
      guard state.stage == .open else { throw SystemError(EBADF) }
      if state.descriptor == nil, size == 0 { return }
      try system.truncate(try state.descriptor ?? begin(&state), to: size)
      state.length = size
    }
  }

  // MARK: Durability

  var isNamed: Bool { state.withLock { $0.claim != nil } }

  func persist() throws {
    try withState("give a name to") { state in try persist(&state) }
  }

  func synchronize() async throws {
    let isEmpty = try withState("flush") { state in
      guard state.stage != .closed else { throw SystemError(EBADF) }
      // There is nothing to keep yet.
      guard state.descriptor != nil else { return true }
      try persist(&state)
      return false
    }
    guard durability == .power, !isEmpty else { return }
    try await Blocking.run { [self] _ in
      // A duplicate, so that nothing waits for the lock as long as the disk takes. Errors of earlier writes
      // belong to the open file, and a duplicate sees them.
      let (copy, nameIsNew) = try withState("flush") { state in
        guard let file = state.descriptor else { throw SystemError(EBADF) }
        return (try system.duplicate(file), state.nameIsNew)
      }
      try reporting("flush", path) { () throws(SystemError) in
        do throws(SystemError) {
          try system.flush(copy)
        } catch {
          try? system.close(copy)
          throw error
        }
        try system.close(copy)
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
      guard let file = state.descriptor else { return }
      // Steps take the file over as it is, and the store's own folder keeps others away meanwhile.
      if state.claim != nil { try system.permit(file, try folders.permissionsOfNewFiles()) }
      // Network file systems tell at closing that earlier bytes were lost; publishing needs the descriptor.
      try system.close(try system.duplicate(file))
    }
  }

  func close() throws {
    let (file, claim, wasOpen) = state.withLock { state in
      defer {
        state.stage = .closed
        state.descriptor = nil
        state.claim = nil
      }
      return (state.descriptor, state.claim, state.stage != .closed)
    }
    guard wasOpen else { return }
    defer {
      // Nothing can be written any more.
      if let claim {
        folders.letGo(path, by: claim)
        claim.release()
      }
      folders.leave()
    }
    // Gone even when closing reports that earlier bytes were lost.
    if let file { try reporting("close", path) { () throws(SystemError) in try system.close(file) } }
  }

  func artifact(name: String, mediaType: String?) throws -> Artifact {
    let size = try withState("look at") { state in
      state.stage == .closed ? try system.status(Entry(path)).size : state.length
    }
    return Artifact(location: .path(path), name: name, size: .known(size), mediaType: mediaType)
  }

  // MARK: The file

  /// The file for publishing it; `nil` once it is closed. An empty download gets one now.
  func held() throws -> HeldFile? {
    try withState("look at") { state in
      guard state.stage != .closed else { return nil }
      let file = try state.descriptor ?? begin(&state)
      try state.claim?.check()
      if state.claim != nil, state.stage == .open {
        try system.permit(file, try folders.permissionsOfNewFiles())
      }
      return HeldFile(
        descriptor: file, status: try system.status(file), name: state.claim == nil ? nil : path, partial: self)
    }
  }

  /// Makes the file: one without a name if the name is not claimed and the file system can do that.
  private func begin(_ state: inout State) throws -> CInt {
    if state.claim == nil {
      do {
        let file = try folders.making(PathText.split(path).folder) { try system.openUnnamed(in: folders.partials) }
        state.descriptor = file
        return file
      } catch let error as SystemError where error.saysNoUnnamedFiles {}
    }
    return try makeNamed(&state)
  }

  private func makeNamed(_ state: inout State) throws -> CInt {
    try claimName(&state) {
      // Not the file that an earlier, unknown download has left.
      try system.makeRoom(at: Entry(path)) { () throws(SystemError) in
        try system.open(Entry(path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
      }
    }
  }

  private func persist(_ state: inout State) throws {
    guard state.stage != .closed else { throw SystemError(EBADF) }
    guard let file = state.descriptor else {
      _ = try makeNamed(&state)
      return
    }
    if let claim = state.claim { return try claim.check() }
    let isFinished = state.stage == .finished
    _ = try claimName(&state) {
      if !isFinished { try system.permit(file, 0o600) }
      try system.makeRoom(at: Entry(path)) { () throws(SystemError) in try system.link(file, to: Entry(path)) }
      return file
    }
  }

  /// Claims the name, and gives it to a file; both or none.
  private func claimName(_ state: inout State, _ body: () throws -> CInt) throws -> CInt {
    try folders.making(PathText.split(path).folder) {
      let isHeld = state.claim != nil
      let claim =
        try state.claim ?? PartialClaim.take(path, keepingBytes: false, durability: durability, system: system)
      do {
        let file = try body()
        if !isHeld { folders.hold(path, by: claim) }
        state.claim = claim
        state.descriptor = file
        state.nameIsNew = true
        return file
      } catch {
        if !isHeld { claim.release() }
        throw error
      }
    }
  }

  /// Puts another file under the name, by a rename.
  func replaceFile(by file: String) throws -> Bool {
    try withState("take over a file as") { state in
      guard state.stage == .open else { throw SystemError(EBADF) }
      let status = try system.status(Entry(file))
      guard status.kind == .file else { return false }
      let (old, length) = (state.descriptor, status.size)
      do {
        _ = try claimName(&state) {
          let new = try system.open(Entry(file), O_RDWR | O_NOFOLLOW)
          do {
            // Those of a partial; finishing opens it up.
            try system.permit(new, 0o600)
            try system.rename(Entry(file), to: Entry(path))
          } catch {
            try? system.close(new)
            throw error
          }
          return new
        }
      } catch let error as SystemError where error.code == EXDEV {
        return false
      }
      state.length = length
      // What was written before has no name any more.
      if let old { try? system.close(old) }
      return true
    }
  }

  // MARK: -

  /// Does something with the file, `nil` before the first byte.
  func withFile<Value>(_ action: String, _ body: (CInt?) throws -> Value) throws -> Value {
    try withState(action) { state in
      guard state.stage != .closed else { throw SystemError(EBADF) }
      return try body(state.descriptor)
    }
  }

  private func withState<Value>(_ action: String, _ body: (inout State) throws -> Value) throws -> Value {
    try reporting(action, path) { try state.withLock { state in try body(&state) } }
  }
}
