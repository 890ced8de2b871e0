public import DownpipeCore
import Foundation

/// A partial of ``FakeStorage``. The storage holds its bytes, in memory.
public final class FakePartial: Partial {
  /// The download and generation of the partial.
  public let key: PartialKey
  private let storage: FakeStorage
  /// Compared with the current opening: a removal or a power loss invalidates this partial.
  private let opening: Int
  private let isClosed = Watched(false)
  private let isFinished = Watched(false)

  /// The maximum size, so that a wrong position in a test causes an error instead of filling the memory.
  private static let maximumSize: Int64 = 1 << 30

  init(storage: FakeStorage, key: PartialKey, opening: Int) {
    self.storage = storage
    self.key = key
    self.opening = opening
  }

  /// Releases the bytes; an unnamed partial loses them. A partial that was not closed still counts in
  /// ``FakeStorage/openPartials``.
  deinit {
    storage.state.update { state in
      guard let stored = state.partials[key], stored.holder == opening else { return }
      if stored.isNamed { state.partials[key]?.holder = nil } else { state.partials[key] = nil }
    }
  }

  private func withBytes<Result: Sendable>(
    _ body: (inout FakeStorage.Stored) throws(DownloadError) -> Result
  ) throws(DownloadError) -> Result {
    guard !isClosed.value else {
      throw DownloadError(.storage, "the partial of \(key.id) is closed: open it again", stage: storage.name)
    }
    return try storage.state.update { state throws(DownloadError) in
      guard var stored = state.partials[key], stored.holder == opening else {
        throw DownloadError(
          .storage, "the partial of \(key.id) was removed or lost in a power failure: open it again",
          stage: storage.name)
      }
      // Removed during the change, so that the bytes are changed in place instead of copied.
      state.partials[key] = nil
      defer { state.partials[key] = stored }
      return try body(&stored)
    }
  }

  /// The number of bytes.
  public func size() throws -> Int64 {
    try withBytes { Int64($0.bytes.count) }
  }

  /// Writes to memory; a gap before the bytes is filled with zeros.
  public func write(_ bytes: RawSpan, at offset: Int64) throws {
    let length = Int64(bytes.byteCount)
    guard offset >= 0, offset <= Self.maximumSize - length else {
      throw DownloadError(.storage, "bytes cannot be written at \(offset)", stage: storage.name)
    }
    try checkWritable()
    try storage.enter(.write, key, offset..<(offset + length))
    let chunk = bytes.withUnsafeBytes { [UInt8]($0) }
    try withBytes { stored in
      let start = Int(offset)
      if stored.bytes.count < start {
        stored.bytes.append(contentsOf: [UInt8](repeating: 0, count: start - stored.bytes.count))
      }
      let overlap = min(stored.bytes.count - start, chunk.count)
      stored.bytes.replaceSubrange(start..<(start + overlap), with: chunk)
    }
  }

  /// Reads from memory.
  public func read(at offset: Int64, count: Int) throws -> [UInt8] {
    guard offset >= 0, count >= 0 else {
      throw DownloadError(.storage, "bytes cannot be read at \(offset)", stage: storage.name)
    }
    let end = offset.addingReportingOverflow(Int64(count))
    try storage.enter(.read, key, offset..<(end.overflow ? .max : end.partialValue))
    return try withBytes { stored in
      guard offset < Int64(stored.bytes.count) else { return [] }
      return Array(stored.bytes[Int(offset)...].prefix(count))
    }
  }

  /// Removes bytes from the end or appends zeros.
  public func truncate(to size: Int64) throws {
    guard size >= 0, size <= Self.maximumSize else {
      throw DownloadError(.storage, "a partial cannot have \(size) bytes", stage: storage.name)
    }
    try checkWritable()
    try storage.enter(.truncate, key, 0..<size)
    try withBytes { stored in
      let excess = stored.bytes.count - Int(size)
      if excess > 0 {
        stored.bytes.removeLast(excess)
      } else {
        stored.bytes.append(contentsOf: [UInt8](repeating: 0, count: -excess))
      }
    }
  }

  /// Makes the current bytes survive ``FakeStorage/losePower()``.
  public func synchronize() async throws {
    try storage.enter(.synchronize, key)
    try withBytes {
      $0.durable = $0.bytes
      $0.isNamed = true
    }
  }

  /// Gives the partial a name, so that its bytes outlive the opening.
  public func persist() throws {
    try storage.enter(.persist, key)
    try withBytes { $0.isNamed = true }
  }

  /// Ends writing; the partial stays open. Throws the error planned for `close`.
  public func finish() throws {
    let wasFinished = isFinished.update { isFinished in
      defer { isFinished = true }
      return isFinished
    }
    if !wasFinished { try storage.enter(.close, key) }
  }

  private func checkWritable() throws(DownloadError) {
    if isFinished.value {
      throw DownloadError(.storage, "the partial of \(key.id) is finished: open it again", stage: storage.name)
    }
  }

  /// Closes the partial; it cannot be written afterwards, even when the planned error is thrown.
  public func close() throws {
    let wasClosed = isClosed.update { isClosed in
      defer { isClosed = true }
      return isClosed
    }
    guard !wasClosed else { return }
    storage.state.update { state in
      state.open.remove(opening)
      guard let stored = state.partials[key], stored.holder == opening else { return }
      if stored.isNamed { state.partials[key]?.holder = nil } else { state.partials[key] = nil }
    }
    if !isFinished.value { try storage.enter(.close, key) }
  }

  /// The bytes as a file in memory.
  public func artifact(name: String, mediaType: String?) throws -> Artifact {
    guard let bytes = storage.state.value.partials[key]?.bytes else {
      throw DownloadError(.storage, "the partial of \(key.id) was removed", stage: storage.name)
    }
    return Artifact(
      location: .memory(bytes), name: name, size: .known(Int64(bytes.count)), mediaType: mediaType)
  }

  /// Returns `false`: a file cannot become bytes in memory without a copy.
  public func adopt(_ path: String) throws -> Bool { false }

  /// Replaces the bytes with the first `count` bytes of a real file.
  public func copy(_ path: String, count: Int64) async throws -> Int64? {
    let url = URL(filePath: path, directoryHint: .notDirectory)
    let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
    guard type == .typeRegular, let file = try? FileHandle(forReadingFrom: url) else {
      throw DownloadError(.invalidRequest, "\(path) is not a file: its bytes cannot be copied", stage: storage.name)
    }
    defer { try? file.close() }
    try truncate(to: 0)
    var done: Int64 = 0
    while done < count {
      try Task.checkCancellation()
      let chunk = [UInt8](try file.read(upToCount: Int(min(64 << 10, count - done))) ?? Data())
      if chunk.isEmpty { break }
      try write(chunk.span.bytes, at: done)
      done += Int64(chunk.count)
    }
    return done
  }

  /// Writes the first `count` bytes to a new file.
  public func export(to path: String, count: Int64) async throws {
    let bytes = try withBytes { $0.bytes.prefix(Int(clamping: max(0, count))) }
    guard bytes.count == count else {
      throw DownloadError(
        .storage, "the partial of \(key.id) has \(bytes.count) bytes, not \(count)", stage: storage.name)
    }
    guard !FileManager.default.fileExists(atPath: path) else {
      throw DownloadError(.alreadyExists, "\(path) exists already: choose another name", stage: storage.name)
    }
    do {
      try Data(bytes).write(to: URL(filePath: path, directoryHint: .notDirectory), options: .withoutOverwriting)
    } catch {
      throw DownloadError(.storage, "\(path) cannot be written", stage: storage.name, cause: error)
    }
  }

  /// Marks up to 64 KiB with a 64-bit checksum.
  public func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark? {
    let end = max(0, offset)
    let range = min(end, max(0, start, end - (64 << 10)))..<end
    guard try size() >= range.upperBound else {
      throw DownloadError(.storage, "the partial of \(key.id) ends before byte \(offset)", stage: storage.name)
    }
    return BlockMark(range: range, digest: try sum(of: range))
  }

  /// Returns whether the checksum is unchanged.
  public func matches(_ mark: BlockMark) throws -> Bool {
    guard mark.range.lowerBound >= 0, try size() >= mark.range.upperBound else { return false }
    return try sum(of: mark.range) == mark.digest
  }

  /// FNV-1a. It is not recorded as a read.
  private func sum(of range: ByteRange) throws -> FileDigest {
    let bytes = try withBytes { Array($0.bytes[Int(range.lowerBound)..<Int(range.upperBound)]) }
    let sum = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return FileDigest(DigestAlgorithm("fnv-1a-64"), bytes: withUnsafeBytes(of: sum.bigEndian, Array.init))
  }
}
