import DownpipeCore
import Foundation
import Synchronization

/// The disk of a simulated machine: it outlives processes, and loses what was not flushed with the power.
final class SimulatedDisk: Sendable {
  /// A file that is being written.
  struct Stored: Sendable {
    var bytes = SparseBytes()
    /// What is left after a loss of power, at least.
    var durable = SparseBytes()
    /// The writes since the last flush.
    var pending: [ByteRange] = []
    /// Whether it has a name, under which another process finds it.
    var isNamed = false
    /// Whether its name outlives a loss of power.
    var isNameDurable = false
    /// The opening that holds it.
    var holder: Int?
  }

  struct State: Sendable {
    var partials: [PartialKey: Stored] = [:]
    /// Published files, and results of steps, by path.
    var files: [String: Stored] = [:]
    /// The paths of publications by their numbers, as a file's own identity shows them.
    var publications: [Int: String] = [:]
    var lastPublication = 0
    var lastOpening = 0
    /// The process that made each opening that has not been closed.
    var openings: [Int: (key: PartialKey, process: SimulatedProcess)] = [:]

    var used: Int64 {
      partials.values.reduce(0) { $0 + $1.bytes.ranges.byteCount } + files.values.reduce(0) { $0 + $1.bytes.size }
    }
  }

  let world: World
  private let state = Mutex(State())

  init(_ world: World) { self.world = world }

  func withState<Result: Sendable, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try state.withLock { (state) throws(Failure) in try body(&state) }
  }

  var contents: State { state.withLock { $0 } }

  /// The free space; `nil` if there is no limit.
  var free: Int64? {
    guard !world.areFaultsOver else { return nil }
    return world.configuration.diskSpace.map { space in max(0, space - state.withLock { $0.used }) }
  }

  /// Fails sometimes, before an operation has an effect.
  func fail(_ operation: String) throws(DownloadError) {
    guard world.happens(world.configuration.diskFailures, .disk) else { return }
    world.coverage.count("fault: disk")
    world.timeline.note(.disk, text: "\(operation) fails")
    throw DownloadError(.storage, "\(operation): input/output error")
  }

  // MARK: Ends of processes

  /// Closes what a process has open. Files without a name are gone.
  func release(_ process: SimulatedProcess) {
    withState { state in
      for (opening, owner) in state.openings where owner.process === process {
        state.openings[opening] = nil
        guard state.partials[owner.key]?.holder == opening else { continue }
        if state.partials[owner.key]?.isNamed == true {
          state.partials[owner.key]?.holder = nil
        } else {
          state.partials[owner.key] = nil
        }
      }
    }
  }

  /// Loses all bytes that were not flushed: each write on its own is on the disk or not.
  func losePower() {
    let keys = withState { state in
      (
        state.partials.keys.sorted { ($0.id.rawValue, $0.generation) < ($1.id.rawValue, $1.generation) },
        state.files.keys.sorted()
      )
    }
    for key in keys.0 {
      withState { state in
        state.partials[key] = state.partials[key].flatMap { survivor(of: $0) }
      }
    }
    for path in keys.1 {
      withState { state in
        state.files[path] = state.files[path].flatMap { survivor(of: $0) }
      }
    }
  }

  private func survivor(of stored: Stored) -> Stored? {
    guard stored.isNamed else { return nil }
    if !stored.isNameDurable, world.random(.crashes, { Bool.random(using: &$0) }) { return nil }
    var bytes = stored.durable
    for range in stored.pending where world.random(.crashes, { Bool.random(using: &$0) }) {
      bytes.write(range.clamped(to: 0..<stored.bytes.size), of: stored.bytes)
    }
    return Stored(bytes: bytes, durable: bytes, isNamed: true, isNameDurable: true)
  }
}

/// The storage of a simulated process: a folder on the machine's disk.
struct SimulatedStorage: Storage {
  static let root = "/simulated"

  let disk: SimulatedDisk
  let process: SimulatedProcess

  var name: String { "SimulatedStorage" }
  var durability: Durability { disk.world.configuration.durability }
  private var world: World { disk.world }

  /// Waits, as an operation of a disk may.
  private func enter(_ operation: String) async throws {
    try process.checkAlive()
    await world.scheduler.yield(on: process.executor)
    if world.happens(world.configuration.slowDisk, .disk) {
      try await process.time.sleep(for: world.duration(in: .zero ... .seconds(1), .disk), purpose: .simulated)
    }
    try process.checkAlive()
    try disk.fail(operation)
  }

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try await enter("opening")
    let opening = try disk.withState { state throws(DownloadError) in
      if state.partials[key]?.holder != nil {
        throw DownloadError(.inUse, "the partial of \(key.id) is open already", stage: name)
      }
      state.lastOpening += 1
      state.openings[state.lastOpening] = (key, process)
      if isNew { state.partials[key] = nil }
      state.partials[key, default: SimulatedDisk.Stored(isNamed: !isNew)].holder = state.lastOpening
      return state.lastOpening
    }
    world.timeline.note(.disk, process.number, key.id, numbers: Int64(opening), text: "opens its partial")
    return SimulatedPartial(disk: disk, process: process, key: key, opening: opening)
  }

  func removePartial(_ key: PartialKey) async throws {
    try await enter("removing")
    world.timeline.note(.disk, process.number, key.id, text: "removes its partial")
    disk.withState { state in
      state.partials[key] = nil
      let folder = workspacePath(key) + "/"
      state.files = state.files.filter { !$0.key.hasPrefix(folder) }
    }
  }

  func workspace(_ key: PartialKey) async throws -> String? {
    try await enter("making a workspace")
    return workspacePath(key)
  }

  private func workspacePath(_ key: PartialKey) -> String {
    "\(Self.root)/.work/\(key.id.rawValue)-\(key.generation)"
  }

  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await enter("publishing")
    let folder = destination.directory.map { $0 + "/" } ?? ""
    let wanted = "\(Self.root)/\(folder)\(destination.finalName ?? artifact.name)"
    // The note tells whether this publication succeeded before the process ended.
    if let number = context.priorNote.flatMap(Int.init), let path = disk.contents.publications[number],
      disk.contents.files[path] != nil
    {
      return described(artifact, at: path)
    }
    if artifact.path == wanted { return artifact }
    let number = disk.withState { state in
      state.lastPublication += 1
      return state.lastPublication
    }
    try await context.note(String(number))
    try process.checkAlive()
    let path: String? = disk.withState { state in
      guard var stored = self.stored(artifact, in: &state) else { return nil }
      var path = wanted
      var copy = 1
      while state.files[path] != nil, path != context.replaces?.path {
        copy += 1
        path = "\(wanted) (\(copy))"
      }
      if durability == .power { (stored.durable, stored.pending) = (stored.bytes, []) }
      (stored.isNamed, stored.isNameDurable, stored.holder) = (true, durability == .power, nil)
      if let old = artifact.path, old.hasPrefix(Self.root), !old.hasSuffix(SimulatedPartial.suffix) {
        state.files[old] = nil
      }
      state.files[path] = stored
      state.publications[number] = path
      return path
    }
    guard let path else {
      throw DownloadError(.storage, "\(artifact.name) is not there", stage: name)
    }
    world.timeline.note(.disk, process.number, context.request.id, text: "publishes \(path)")
    process.published(context.request, at: path)
    return described(artifact, at: path)
  }

  /// The bytes of an artifact.
  private func stored(_ artifact: Artifact, in state: inout SimulatedDisk.State) -> SimulatedDisk.Stored? {
    guard let path = artifact.path else { return nil }
    if let key = SimulatedPartial.key(of: path, among: state.partials.keys) { return state.partials[key] }
    return state.files[path]
  }

  private func described(_ artifact: Artifact, at path: String) -> Artifact {
    var published = artifact
    published.location = .path(path)
    published.name = String(path.split(separator: "/").last ?? "")
    published.size = .known(disk.contents.files[path]?.bytes.size ?? 0)
    return published
  }

  func isStaged(_ artifact: Artifact) -> Bool {
    artifact.path.map { $0.hasPrefix("\(Self.root)/.work/") || $0.hasSuffix(SimulatedPartial.suffix) } ?? true
  }

  func contains(_ artifact: Artifact) async -> Bool {
    guard let path = artifact.path else { return false }
    return disk.withState { state in
      guard let stored = stored(artifact, in: &state) else { return false }
      return path.hasSuffix(SimulatedPartial.suffix) || artifact.size == .unknown
        || artifact.size == .known(stored.bytes.size)
    }
  }

  func existing(for request: DownloadRequest) async throws -> Artifact? { nil }

  func remove(_ artifact: Artifact) async throws {
    try await enter("removing")
    guard let path = artifact.path else { return }
    world.timeline.note(.disk, process.number, text: "removes \(path)")
    disk.withState { state in _ = state.files.removeValue(forKey: path) }
  }

  func storedPath(for path: String) -> String {
    path.hasPrefix(Self.root + "/") ? String(path.dropFirst(Self.root.count + 1)) : path
  }

  func path(forStored storedPath: String) throws -> String {
    storedPath.hasPrefix("/") ? storedPath : "\(Self.root)/\(storedPath)"
  }

  func partials() async throws -> [StoredPartial]? {
    try await enter("listing")
    return disk.contents.partials.filter(\.value.isNamed)
      .map { StoredPartial(key: $0.key, size: $0.value.bytes.size, isInUse: $0.value.holder != nil) }
      .sorted { ($0.key.id.rawValue, $0.key.generation) < ($1.key.id.rawValue, $1.key.generation) }
  }

  func availableBytes() async throws -> Int64? {
    try await enter("asking for the free space")
    return disk.free
  }
}

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
    "\(SimulatedStorage.root)/.partials/\(key.id.rawValue)-\(key.generation)\(suffix)"
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
      disk.world.coverage.count("fault: full disk")
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
    try withStored { stored in
      stored.bytes.truncate(to: size)
      stored.pending = stored.pending.map { $0.clamped(to: 0..<size) }.filter { !$0.isEmpty }
    }
  }

  func synchronize() async throws {
    await disk.world.scheduler.yield(on: process.executor)
    if disk.world.happens(disk.world.configuration.slowDisk, .disk) {
      try await process.time.sleep(for: disk.world.duration(in: .zero ... .seconds(1), .disk), purpose: .simulated)
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
