import DownpipeCore
import DownpipePOSIX
import Foundation
import Synchronization

/// The contents of a store, which its copies share.
final class MemoryContents: Sendable {
  let state = Mutex(State())

  struct State: Sendable {
    var partials: [PartialKey: [UInt8]] = [:]
    /// The number of bytes in all partials.
    var partialBytes = 0
    /// The number of the opening that holds a partial, for open partials.
    var holders: [PartialKey: UInt64] = [:]
    /// The number of openings so far.
    var openings: UInt64 = 0
    /// The published artifacts, by name.
    var published: [String: Artifact] = [:]
    /// The number of bytes in all published artifacts.
    var publishedBytes = 0
  }
}

extension Artifact {
  /// The number of bytes in memory.
  var byteCount: Int {
    if case .memory(let bytes) = location { bytes.count } else { 0 }
  }

  /// Whether the bytes are missing: a ledger stores the size of an artifact in memory, not its bytes.
  var lacksBytes: Bool {
    guard case .known(let size) = size else { return false }
    return size > 0 && location == .memory([])
  }

  /// Whether this published artifact is the one that a ledger describes: another one may have the same name and the
  /// same bytes. Ledgers store times in microseconds.
  func isSame(as described: Artifact) -> Bool {
    guard let mine = modifiedAt, let its = described.modifiedAt, abs(mine.timeIntervalSince(its)) < 0.000_002 else {
      return false
    }
    return location == described.location || (described.lacksBytes && size == described.size)
  }
}

/// The bytes of an unfinished download in memory.
final class MemoryPartial: Partial {
  private let key: PartialKey
  private let store: MemoryStore
  /// The number of this opening. A later opening, removing and closing make this one invalid.
  private let opening: UInt64
  /// Whether writing is an error.
  private let isFinished = Atomic(false)

  init(key: PartialKey, opening: UInt64, store: MemoryStore) {
    self.key = key
    self.opening = opening
    self.store = store
  }

  deinit { letGo() }

  func size() throws -> Int64 { try withBytes { bytes, _ in Int64(bytes.count) } }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    let count = bytes.byteCount
    guard offset >= 0, offset <= Int64(store.maximumBytes), count <= store.maximumBytes - Int(offset) else {
      throw store.full("write at \(offset)")
    }
    try checkWritable()
    try bytes.withUnsafeBytes { new in
      try withBytes { [store] kept, room in
        let start = Int(offset)
        let growth = max(0, start + count - kept.count)
        guard growth <= room else { throw store.full("write at \(offset)") }
        if start > kept.count { kept.append(contentsOf: repeatElement(0, count: start - kept.count)) }
        let overlap = min(count, kept.count - start)
        if overlap > 0 {
          kept.withUnsafeMutableBytes { buffer in
            UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + overlap)])
              .copyMemory(from: UnsafeRawBufferPointer(rebasing: new[..<overlap]))
          }
        }
        kept.append(contentsOf: new[max(0, overlap)...])
      }
    }
  }

  func read(at offset: Int64, count: Int) throws -> [UInt8] {
    try withBytes { bytes, _ in
      guard offset >= 0, offset < Int64(bytes.count) else { return [] }
      return Array(bytes[Int(offset)...].prefix(max(0, count)))
    }
  }

  func truncate(to size: Int64) throws {
    guard size >= 0, size <= Int64(store.maximumBytes) else { throw store.full("extend to \(size) bytes") }
    try checkWritable()
    try withBytes { [store] bytes, room in
      let size = Int(size)
      if size <= bytes.count {
        bytes.removeLast(bytes.count - size)
      } else {
        guard size - bytes.count <= room else { throw store.full("extend to \(size) bytes") }
        bytes.append(contentsOf: repeatElement(0, count: size - bytes.count))
      }
    }
  }

  func synchronize() async throws {}

  func finish() throws {
    try withBytes { _, _ in }
    isFinished.store(true, ordering: .relaxed)
  }

  func close() throws { letGo() }

  private func letGo() {
    store.contents.state.withLock { state in
      if state.holders[key] == opening { state.holders[key] = nil }
    }
  }

  func export(to path: String, count: Int64) async throws {
    let bytes = try read(at: 0, count: Int(clamping: max(0, count)))
    try await BlockingThreads.run { _ in
      let file = ExportedFile(path, count: count)
      try file.make { target in
        try target.write(bytes.span.bytes, at: 0)
        return Int64(bytes.count)
      }
    }
  }

  func artifact(name: String, mediaType: String?) throws -> Artifact {
    let bytes = store.contents.state.withLock { $0.partials[key] }
    guard let bytes else { throw gone }
    return Artifact(location: .memory(bytes), name: name, size: .known(Int64(bytes.count)), mediaType: mediaType)
  }

  private func checkWritable() throws(DownloadError) {
    if isFinished.load(ordering: .relaxed) { throw gone }
  }

  private var gone: DownloadError {
    DownloadError(.storage, "the partial of “\(key.id)” was finished or closed: open it again")
  }

  private func withBytes<Value: Sendable>(_ body: (inout [UInt8], _ room: Int) throws -> Value) throws -> Value {
    try store.contents.state.withLock { state in
      guard state.holders[key] == opening, let index = state.partials.index(forKey: key) else { throw gone }
      let before = state.partials.values[index].count
      let room = store.maximumBytes - state.partialBytes - state.publishedBytes
      // Changed in place: a copy for each chunk would take quadratic time.
      defer { state.partialBytes += state.partials.values[index].count - before }
      return try body(&state.partials.values[index], room)
    }
  }
}
