import DownpipeCore

/// The storage of a simulated process: a folder on the machine's disk.
struct SimulatedStorage: Storage {
  static let root = "/simulated"

  let disk: SimulatedDisk
  let process: SimulatedProcess

  var name: String { "SimulatedStorage" }
  var mayBlock: Bool { false }
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
    if process.lack == .disk {
      throw process.lacking(DownloadError(.permission, "the disk is read-only", stage: name, scope: .machine))
    }
    let opening = try disk.withState { state throws(DownloadError) in
      if let holder = state.partials[key]?.holder {
        // The lock of a partial keeps other processes away. In one process there must not be two that need it.
        if let owner = state.openings[holder]?.process { process.system.checks.opened(key, process, besides: owner) }
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
    "\(Self.root)/.work/\(key.id.rawValue)-\(key.generation)\(key.isSecond ? "-second" : "")"
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
    if disk.contents.unseen.contains(path) {
      process.system.checks.report(.stepInputs, "\(path) is removed, and its step has made nothing of it")
    }
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
