public import DownpipeCore

/// A partial of ``FakeStorage``: bytes in memory that outlive it.
public final class FakePartial: Partial {
  /// The partial's name.
  public let key: PartialKey
  private let storage: FakeStorage
  /// A later opening, a removal or a loss of power makes this one useless.
  private let opening: Int
  private let isClosed = Watched(false)

  /// The most bytes a partial holds, so that a wrong position in a test is an error and not a full memory.
  private static let maximumSize: Int64 = 1 << 30

  init(storage: FakeStorage, key: PartialKey, opening: Int) {
    self.storage = storage
    self.key = key
    self.opening = opening
  }

  private func withBytes<Result: Sendable>(
    _ body: (inout FakeStorage.Stored) throws(DownloadError) -> Result
  ) throws(DownloadError) -> Result {
    guard !isClosed.value else {
      throw DownloadError(.storage, "the partial of \(key.id) is closed: open it again", stage: storage.name)
    }
    return try storage.state.update { state throws(DownloadError) in
      guard var stored = state.partials[key], stored.openings == opening else {
        throw DownloadError(
          .storage, "the partial of \(key.id) was removed or opened by somebody else", stage: storage.name)
      }
      // Taken out meanwhile, so that the bytes are changed in place.
      state.partials[key] = nil
      defer { state.partials[key] = stored }
      return try body(&stored)
    }
  }

  /// How many bytes there are.
  public func size() throws -> Int64 {
    try withBytes { Int64($0.bytes.count) }
  }

  /// Writes into memory; a gap before the bytes is filled with zeros.
  public func write(_ bytes: RawSpan, at offset: Int64) throws {
    let length = Int64(bytes.byteCount)
    guard offset >= 0, offset <= Self.maximumSize - length else {
      throw DownloadError(.storage, "bytes cannot be written at \(offset)", stage: storage.name)
    }
    try storage.enter(.write, key, offset..<(offset + length))
    let chunk = bytes.withUnsafeBytes { [UInt8]($0) }
    try withBytes { stored in
      let start = Int(offset)
      if stored.bytes.count < start {
        stored.bytes.append(contentsOf: repeatElement(0, count: start - stored.bytes.count))
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

  /// Cuts the bytes or adds zeros.
  public func truncate(to size: Int64) throws {
    guard size >= 0, size <= Self.maximumSize else {
      throw DownloadError(.storage, "a partial cannot have \(size) bytes", stage: storage.name)
    }
    try storage.enter(.truncate, key, 0..<size)
    try withBytes { stored in
      let excess = stored.bytes.count - Int(size)
      if excess > 0 {
        stored.bytes.removeLast(excess)
      } else {
        stored.bytes.append(contentsOf: repeatElement(0, count: -excess))
      }
    }
  }

  /// Makes the bytes survive ``FakeStorage/losePower()``.
  public func synchronize() async throws {
    try storage.enter(.synchronize, key)
    try withBytes { $0.durable = $0.bytes }
  }

  /// Closes; nothing can be written afterwards. The planned error is thrown all the same.
  public func close() throws {
    let wasClosed = isClosed.update { isClosed in
      defer { isClosed = true }
      return isClosed
    }
    guard !wasClosed else { return }
    storage.state.update { state in
      if state.partials[key]?.openings == opening { state.openPartials -= 1 }
    }
    try storage.enter(.close, key)
  }

  /// The bytes as a file in memory.
  public func artifact(name: String, mediaType: String?) throws -> Artifact {
    guard let bytes = storage.state.value.partials[key]?.bytes else {
      throw DownloadError(.storage, "the partial of \(key.id) was removed", stage: storage.name)
    }
    return Artifact(
      location: .memory(bytes), name: name, size: .known(Int64(bytes.count)), mediaType: mediaType)
  }
}
