import DownpipeCore
import Synchronization

/// A partial on a simulated disk.
final class SimulatedPartial: Partial {
  static let suffix = ".partial"

  private let disk: SimulatedDisk
  private let process: SimulatedProcess
  private let key: PartialKey
  private let opening: Int
  private let isClosed = Mutex(false)

  init(disk: SimulatedDisk, process: SimulatedProcess, key: PartialKey, opening: Int) {
    self.disk = disk
    self.process = process
    self.key = key
    self.opening = opening
  }

  /// The path of a partial.
  static func path(of key: PartialKey) -> String {
    "\(SimulatedStorage.root)/.partials/\(key.id.rawValue)-\(key.generation)\(key.isSecond ? "-second" : "")\(suffix)"
  }

  static func key(of path: String, among keys: some Collection<PartialKey>) -> PartialKey? {
    path.hasSuffix(suffix) ? keys.first { Self.path(of: $0) == path } : nil
  }

  private func withStored<Result: Sendable>(
    _ body: (inout SimulatedDisk.Stored) throws(DownloadError) -> Result
  ) throws(DownloadError) -> Result {
    try process.checkAlive()
    guard !isClosed.withLock({ $0 }) else { throw DownloadError(.storage, "the partial of \(key.id) is closed") }
    return try disk.withState { state throws(DownloadError) in
      guard var stored = state.partials[key], stored.holder == opening else {
        throw DownloadError(.storage, "the partial of \(key.id) was removed")
      }
      state.partials[key] = nil
      defer { state.partials[key] = stored }
      return try body(&stored)
    }
  }

  func size() throws -> Int64 { try withStored { $0.bytes.size } }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    try disk.fail("writing")
    let range = offset..<offset + Int64(bytes.byteCount)
    if let free = disk.free, try !isWritten(range), free < Int64(range.count) {
      disk.world.noteFailure("full disk")
      throw DownloadError(.noSpace, "the disk is full")
    }
    disk.world.timeline.note(
      .disk, process.number, key.id, numbers: range.lowerBound, range.upperBound,
      text: "writes bytes \(range.lowerBound)-\(range.upperBound - 1)")
    try withStored { stored in
      stored.bytes.write(bytes, at: offset)
      stored.pending.append(range)
    }
  }

  private func isWritten(_ range: ByteRange) throws -> Bool {
    try withStored { $0.bytes.ranges.isSuperset(of: ByteRangeSet(range)) }
  }

  func read(at offset: Int64, count: Int) throws -> [UInt8] {
    try withStored { stored in
      guard offset < stored.bytes.size else { return [] }
      return stored.bytes.read(offset..<offset + Int64(count))
    }
  }

  func truncate(to size: Int64) throws {
    disk.world.timeline.note(
      .disk, process.number, key.id, numbers: size, text: "cuts its partial to \(size) bytes")
    process.system.checks.cut(key)
    try withStored { stored in
      stored.bytes.truncate(to: size)
      stored.pending = stored.pending.map { $0.clamped(to: 0..<size) }.filter { !$0.isEmpty }
    }
  }

  func synchronize() async throws {
    await disk.world.scheduler.yield(on: process.executor)
    if disk.world.happens(disk.world.configuration.slowDisk, .disk) {
      let length = disk.world.duration(in: .zero ... .seconds(1), .disk)
      // As that of a real disk, a flush goes on if its task is cancelled: transfers flush what they have when they stop.
      await Task(executorPreference: process.executor) { [time = process.time] in
        try? await time.sleep(for: length, purpose: .simulated)
      }.value
    }
    try process.checkAlive()
    try disk.fail("flushing")
    disk.world.timeline.note(.disk, process.number, key.id, text: "flushes its partial")
    let isForPower = disk.world.configuration.durability == .power
    try withStored { stored in
      stored.isNamed = true
      guard isForPower else { return }
      (stored.durable, stored.pending, stored.isNameDurable) = (stored.bytes, [], true)
    }
  }

  func persist() throws { try withStored { $0.isNamed = true } }

  var isNamed: Bool { (try? withStored { $0.isNamed }) ?? false }

  func finish() throws {}

  func close() throws {
    let wasClosed = isClosed.withLock { isClosed in
      defer { isClosed = true }
      return isClosed
    }
    guard !wasClosed else { return }
    disk.withState { state in
      state.openings[opening] = nil
      guard state.partials[key]?.holder == opening else { return }
      if state.partials[key]?.isNamed == true { state.partials[key]?.holder = nil } else { state.partials[key] = nil }
    }
  }

  func artifact(name: String, mediaType: String?) throws -> Artifact {
    Artifact(
      location: .path(Self.path(of: key)), name: name, size: .known(try size()), mediaType: mediaType)
  }

  func export(to path: String, count: Int64) async throws {
    await disk.world.scheduler.yield(on: process.executor)
    try process.checkAlive()
    try disk.fail("exporting")
    let bytes = try withStored { stored throws(DownloadError) in
      guard stored.bytes.size >= count else { throw DownloadError(.storage, "there are no \(count) bytes") }
      var bytes = stored.bytes
      bytes.truncate(to: count)
      return bytes
    }
    disk.world.coverage.count("partial: exported")
    disk.withState { $0.files[path] = SimulatedDisk.Stored(bytes: bytes, isNamed: true) }
  }

  func copy(_ path: String, count: Int64) async throws -> Int64? {
    await disk.world.scheduler.yield(on: process.executor)
    try process.checkAlive()
    try disk.fail("importing")
    guard let source = disk.contents.files[path]?.bytes else {
      throw DownloadError(.invalidRequest, "there is no file \(path)")
    }
    disk.world.coverage.count("partial: imported")
    let size = min(count, source.size)
    try withStored { stored in
      stored.bytes = SparseBytes()
      stored.bytes.write(0..<size, of: source)
      stored.bytes.truncate(to: size)
      stored.pending = [0..<size]
    }
    return size
  }

  func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark? {
    let end = max(0, offset)
    let range = min(end, max(0, start, end - (64 << 10)))..<end
    return try withStored { stored throws(DownloadError) in
      guard stored.bytes.size >= range.upperBound else {
        throw DownloadError(.storage, "the partial of \(key.id) ends before byte \(offset)")
      }
      return BlockMark(range: range, digest: stored.bytes.mark(range))
    }
  }

  func matches(_ mark: BlockMark) throws -> Bool {
    try withStored { stored in
      stored.bytes.size >= mark.range.upperBound && stored.bytes.mark(mark.range) == mark.digest
    }
  }
}
