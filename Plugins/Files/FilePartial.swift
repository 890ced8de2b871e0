import DownpipeCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The bytes of an unfinished download in a file, claimed until it is closed.
final class FilePartial: Partial {
  let path: String
  private let claim: PartialClaim
  private let durability: Durability
  private let system: FileSystem
  /// The lock keeps a write that comes too late from a descriptor that already belongs to another file.
  private let state: Mutex<State>

  private struct State {
    /// `nil` once finished.
    var descriptor: CInt?
    /// Whether the claim has been given back.
    var isReleased = false
    /// Whether the file's name may not be on the disk yet.
    var nameIsNew = true

    var open: CInt {
      get throws(SystemError) {
        guard let descriptor else { throw SystemError(EBADF) }
        return descriptor
      }
    }
  }

  init(descriptor: CInt, path: String, claim: PartialClaim, durability: Durability, system: FileSystem) {
    self.path = path
    self.claim = claim
    self.durability = durability
    self.system = system
    state = Mutex(State(descriptor: descriptor))
  }

  deinit { try? close() }

  func size() throws -> Int64 {
    try withDescriptor("look at") { descriptor throws(SystemError) in try system.status(descriptor).size }
  }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    try withDescriptor("write") { descriptor throws(SystemError) in
      try bytes.withUnsafeBytes { buffer throws(SystemError) in try system.write(descriptor, buffer, at: offset) }
    }
  }

  func read(at offset: Int64, count: Int) throws -> [UInt8] {
    try withDescriptor("read") { descriptor throws(SystemError) in
      // No more room than there are bytes, whatever is asked for.
      let available = try system.status(descriptor).size - max(0, offset)
      let count = Int(min(Int64(max(0, count)), max(0, available)))
      guard count > 0 else { return [] }
      var failure: SystemError?
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        do throws(SystemError) {
          filled = try system.read(descriptor, into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      return bytes
    }
  }

  func truncate(to size: Int64) throws {
    try withDescriptor("change the size of") { descriptor throws(SystemError) in
      try system.truncate(descriptor, to: size)
    }
  }

  func synchronize() async throws {
    guard durability == .power else { return }
    try await Blocking.run { [self] _ in
      // A duplicate, so that nobody waits for the lock as long as the disk takes. Errors of earlier writes
      // belong to the open file, and a duplicate sees them.
      let (copy, nameIsNew) = try withState("flush") { state throws(SystemError) in
        (try system.duplicate(try state.open), state.nameIsNew)
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

  func finish() throws {
    try reporting("close", path) { () throws(SystemError) in
      try state.withLock { state throws(SystemError) in
        guard let descriptor = state.descriptor else { return }
        // Gone even when closing reports that earlier bytes were lost.
        state.descriptor = nil
        try system.close(descriptor)
      }
    }
  }

  func close() throws {
    defer {
      // Nothing can be written any more.
      let isHeld = state.withLock { state in
        defer { state.isReleased = true }
        return !state.isReleased
      }
      if isHeld { claim.release() }
    }
    try finish()
  }

  func artifact(name: String, mediaType: String?) throws -> Artifact {
    let status = try reporting("look at", path) { () throws(SystemError) in try system.status(Entry(path)) }
    return Artifact(location: .path(path), name: name, size: .known(status.size), mediaType: mediaType)
  }

  func adopt(_ path: String) throws -> Bool {
    try withState("take over a file as") { state throws(SystemError) in
      let old = try state.open
      guard try system.status(Entry(path)).kind == .file else { return false }
      let new = try system.open(Entry(path), O_RDWR | O_NOFOLLOW)
      do throws(SystemError) {
        // Temporary files are for their owner's eyes; a download has the permissions that files are made with.
        try system.setPermissions(new, try system.status(old).permissions)
        try system.rename(Entry(path), to: Entry(self.path))
      } catch {
        try? system.close(new)
        if error.code == EXDEV { return false }
        throw error
      }
      state.descriptor = new
      state.nameIsNew = true
      // What was written before has no name any more.
      try? system.close(old)
      return true
    }
  }

  func copy(_ path: String, count: Int64) async throws -> Int64? {
    try await Blocking.run { [self] cancellation in
      let source = try reporting("open", path) { () throws(SystemError) in
        // A pipe without a writer would hold us here for ever.
        try system.open(Entry(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      }
      defer { try? system.close(source) }
      let status = try reporting("look at", path) { () throws(SystemError) in try system.status(source) }
      guard status.kind == .file else {
        throw DownloadError(.storage, "\(path) is no file: its bytes cannot be taken over")
      }
      let count = max(0, count)
      let isItself = try withDescriptor("look at") { descriptor throws(SystemError) in
        try system.status(descriptor).isSame(as: status)
      }
      if isItself {
        let size = min(count, status.size)
        try truncate(to: size)
        return size
      }
      try truncate(to: 0)
      return try copy(source, path, count: count, cancellation)
    }
  }

  private static let bufferSize = 1 << 20

  private func copy(
    _ source: CInt, _ path: String, count: Int64, _ cancellation: Blocking.Cancellation
  ) throws -> Int64 {
    try withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 16) { buffer in
      var done: Int64 = 0
      while done < count {
        try cancellation.check()
        let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), count - done))])
        let got = try reporting("read", path) { () throws(SystemError) in
          try system.read(source, into: chunk, at: done)
        }
        try write(UnsafeRawBufferPointer(rebasing: chunk[..<got]).bytes, at: done)
        done += Int64(got)
        // It may have been cut meanwhile.
        if got < chunk.count { break }
      }
      return done
    }
  }

  func mark(endingAt offset: Int64) throws -> BlockMark? {
    try BlockDigest.mark(endingAt: offset, of: path) { try read(at: $0, count: $1) }
  }

  func matches(_ mark: BlockMark) throws -> Bool {
    try BlockDigest.matches(mark) { try read(at: $0, count: $1) }
  }

  private func withDescriptor<Value>(
    _ action: String, _ body: (CInt) throws(SystemError) -> Value
  ) throws -> Value {
    try withState(action) { state throws(SystemError) in try body(try state.open) }
  }

  private func withState<Value>(
    _ action: String, _ body: (inout State) throws(SystemError) -> Value
  ) throws -> Value {
    try reporting(action, path) { () throws(SystemError) in
      try state.withLock { state throws(SystemError) in try body(&state) }
    }
  }
}
