@_spi(Ledger) public import DownpipeCore
import Foundation
import Synchronization

/// One process on a simulated machine, from its start to its end.
final class SimulatedProcess: Sendable {
  private struct State: Sendable {
    var isAlive = true
    /// Whether the process has ended, alive or not.
    var hasEnded = false
    var downloader: Downloader?
    /// The ledger's store, which ends with the process.
    var store: (any LedgerStore)?
    var waiter: CheckedContinuation<Void, Never>?
    /// Whether a step of the pipeline checks expected digests.
    var verifiesDigests = false
    /// Whether files are on the simulated disk.
    var usesDisk = false
    /// The pipeline of the last downloader.
    var pipeline: Pipeline?
    /// The number of commands that have removed the gate, and not put it back.
    var gateRemovals = 0
  }

  let number: Int
  /// A number that no other process of the world has.
  let incarnation: Int
  let system: SimulatedSystem
  let executor: SimulatedExecutor
  let time: ProcessTime
  /// How far the clock of the process is ahead of the world's, in seconds.
  let clockError: Double
  let gate: SimulatedGate
  let limits: SimulatedLimits
  let watchers: SimulatedWatchers
  private let state = Mutex(State())

  init(_ number: Int, incarnation: Int, on system: SimulatedSystem) {
    self.number = number
    self.incarnation = incarnation
    self.system = system
    executor = SimulatedExecutor(system.world.scheduler)
    let error = system.world.clockError(of: number)
    clockError = error
    time = ProcessTime(clock: system.world.clock, owner: executor) { [world = system.world] in
      world.startDate.addingTimeInterval(error)
    }
    gate = SimulatedGate(world: system.world, number: number)
    limits = .usual
    watchers = SimulatedWatchers(system.world, executor, number: number)
  }

  private var world: World { system.world }

  /// The ledger of the world, which keeps due times by the world's clock.
  var ledger: ClockedLedger { ClockedLedger(system.ledger, ahead: clockError) }

  var isAlive: Bool { state.withLock { $0.isAlive } }
  var downloader: Downloader? { state.withLock { $0.downloader } }

  /// What the machine of the process lacks now.
  var lack: SimulatedWorld.Lack? { world.lack(of: number) }

  /// Counts a fault of the machine.
  func lacking(_ error: DownloadError) -> DownloadError {
    world.coverage.count("machine: \(error.message)")
    return error
  }

  /// Throws after the death of the process: what its tasks still do has no effect.
  func checkAlive() throws(DownloadError) {
    guard isAlive else { throw Self.death }
  }

  static var death: DownloadError { DownloadError(.storage, "the process is dead") }

  // MARK: The downloader

  /// Opens a downloader with the stages.
  func open(
    _ stages: PipelineStages, _ changeOptions: (inout DownloaderOptions) -> Void = { _ in }
  ) async throws -> Downloader {
    var options = DownloaderOptions(
      time: time, random: { [world] in world.random(.backOff) { Double.random(in: 0..<1, using: &$0) } },
      checkpoints: world.checkpoints)
    options.executors = Executors(executor)
    changeOptions(&options)
    options.probe = EngineProbe { [world, number, checks = system.checks, identity = ObjectIdentifier(self)] in
      world.coverage.note($0)
      switch $0 {
      case .stopped(let id, let reason): checks.stopped(id, reason: reason)
      case .planned(let id, .replace), .beganVersion(let id): checks.restarted(id)
      case .called: CommandOrder.current?.arrived()
      case .gaveBack(let id): checks.gaveBack(id, identity)
      case .received(let event) where !event.isOfLoop:
        world.timeline.note(.engine, number, event.id, text: "\(event)")
      case .planned, .received: break
      }
    }
    let stages = stages.changing { [self] parts in
      parts.sources = parts.sources.map { $0 is SimulatedSource ? $0 : SeveredSource(base: $0, process: self) }
      parts.storages = parts.storages.map { $0.isSimulated ? $0 : SeveredStorage(base: $0, process: self) }
      parts.ledgers = (parts.ledgers.last.map { [$0] } ?? [ledger]).map {
        SimulatedLedger(base: $0, process: self)
      }
    }
    let pipeline = Pipeline(stages)
    let usesDisk = pipeline.storage.isSimulated
    state.withLock { state in
      state.usesDisk = usesDisk
      state.pipeline = pipeline
      state.verifiesDigests = pipeline.steps.contains { $0.verifies(SparseBytes.algorithm) }
    }
    system.checks.started(self, usesDisk: usesDisk)
    let build: @Sendable (SimulatedSettings) -> PipelineStages = { settings in
      stages.changing { settings.apply(to: &$0) }
    }
    let downloader = try await Downloader(settings: SimulatedSettings(), options: options, build)
    guard isAlive else {
      downloader.abandon()
      throw Self.death
    }
    state.withLock { $0.downloader = downloader }
    return downloader
  }

  var usesDisk: Bool { state.withLock { $0.usesDisk } }
  var verifiesDigests: Bool { state.withLock { $0.verifiesDigests } }

  /// The stages under test.
  var pipeline: Pipeline? { state.withLock { $0.pipeline } }
  /// Whether the pipeline was given the simulated limits.
  var usesLimits: Bool { pipeline?.admission.contains { $0.id == limits.id } ?? false }
  /// Whether the pipeline was given the simulated gate.
  var usesGate: Bool { pipeline?.gates.contains { $0.id == gate.id } ?? false }
  /// Whether the gate is a part of the pipeline now.
  var hasGate: Bool { usesGate && state.withLock { $0.gateRemovals == 0 } }
  /// Whether the gate holds downloads back.
  var isGateClosed: Bool { hasGate && !gate.isOpen }

  func noteGateRemoval(begins: Bool) { state.withLock { $0.gateRemovals += begins ? 1 : -1 } }

  func forgetDownloader() { state.withLock { $0.downloader = nil } }

  // MARK: The ledger

  func set(_ store: any LedgerStore) {
    state.withLock { $0.store = store }
    system.checks.set(isAlive: true, owner: store.owner)
  }

  /// The store of the ledger.
  /// - Throws: After the death of the process.
  func store() throws(DownloadError) -> any LedgerStore {
    try checkAlive()
    // Another user may have shut the downloader down.
    guard let store = state.withLock({ $0.store }) else { throw DownloadError(.shutDown, "the ledger is closed") }
    return store
  }

  func forgetStore() {
    let store = state.withLock { state in
      defer { state.store = nil }
      return state.store
    }
    if let store { system.checks.set(isAlive: false, owner: store.owner) }
  }

  // MARK: The end

  /// Ends the effects of the process at once.
  func die() {
    state.withLock { $0.isAlive = false }
    // The last reference to the store: its owner is gone.
    forgetStore()
    system.disk.release(self)
    system.checks.died(self)
    world.clock.kill(executor)
    downloader?.abandon()
  }

  /// Runs what is left of the tasks of a dead process, which can do nothing but end.
  func bury() {
    if !world.scheduler.drain(executor) {
      world.report(.determinism, "a stage goes on for ever after the death of its process")
    }
    end()
  }

  /// Wakes the task that waits for the end of the process, which goes on.
  func finish() {
    let waiter = state.withLock { state in
      state.hasEnded = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  /// Wakes the task that waits for the end of the process, which is over.
  private func end() {
    forgetDownloader()
    system.ended(self)
    finish()
  }

  /// Waits until the process has ended.
  func ended() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.hasEnded { state.waiter = continuation }
        return state.hasEnded
      }
      if isOver { continuation.resume() }
    }
  }

  /// Does as a stage that blocks its thread: it takes some time, also if its task is cancelled.
  func mayBlock() async {
    guard world.happens(world.configuration.blockingStages, .stages) else { return }
    world.coverage.count("fault: blocking stage")
    let time = world.duration(in: .zero ... .seconds(120), .stages)
    await Task(executorPreference: executor) { try? await self.time.sleep(for: time, purpose: .simulated) }.value
  }

  // MARK: What is checked

  /// Checks that nothing is left of a downloader that was shut down.
  ///
  /// - Parameter isAlone: Whether no user waits for a command, in which a disk or a ledger may be slow.
  func checkShutdown(isAlone: Bool) {
    let transfers = system.network.exchanges.filter { $0.process === self }.map(\.id)
    if let id = transfers.first { system.checks.report(.shutdown, "\(id) is still being transferred") }
    // An export that is in progress is its caller's.
    let open = system.disk.contents.openings.values.filter {
      $0.process === self && !system.checks.isExported($0.key.id)
    }
    if let one = open.min(by: { $0.key.id.rawValue < $1.key.id.rawValue }) {
      system.checks.report(.shutdown, "the partial of \(one.key.id) is still open")
    }
    let sleeps = world.clock.sleeps(of: executor).filter { purpose in
      purpose != SimulatedUser.sleep && purpose != .changes && (isAlone || purpose != .simulated)
    }
    if let one = sleeps.first { system.checks.report(.shutdown, "something still sleeps: \(one)") }
  }

  func transferBegan(_ id: DownloadID) { system.checks.transferBegan(self, id) }
  func transferEnded(_ id: DownloadID) { system.checks.transferEnded(self, id) }
  func published(_ request: DownloadRequest, at path: String) { system.checks.published(request, at: path) }
}

/// The stages of a simulated process, for the pipeline under test; see ``Simulation``.
///
/// A stage of your own takes the place of one of these, or stands beside them.
public struct SimulatedMachine: Sendable {
  let process: SimulatedProcess

  /// The source for the URLs of the world's servers.
  public var source: some Source { SimulatedSource(network: process.system.network, process: process) }

  /// A folder on the machine's disk, which all processes share.
  public var storage: some Storage { SimulatedStorage(disk: process.system.disk, process: process) }

  /// The machine's ledger, which all processes share. It survives them, and a loss of power. Due times are by the clock of
  /// the world, also if that of the process is another one.
  public var ledger: some Ledger { process.ledger }

  /// How far the clock of the process is ahead of the world's, for a ledger of your own with a clock of its own; see
  /// ``SimulatedWorld/clockDifference``.
  public var clockError: Duration { .seconds(process.clockError) }

  /// A gate that the simulated users open and close.
  public var gate: some Gate { process.gate }

  /// At most three downloads at once, and two from one host, unless the simulated users change it.
  public var limits: some AdmissionPolicy { process.limits }

  /// Three connections for each file whose request asks for it; see ``SimulatedCommand/RequestOptions/segments``.
  public var segments: some SegmentPolicy { SimulatedSegments() }

  /// A step that copies the file to a workspace and checks the expected digest, which takes some time.
  public var step: some PostProcessor<File, File> { SimulatedStep(process: process) }

  /// An observer of all events, which blocks for minutes if the world has such stages.
  public var observer: some Observer { SimulatedObserver(process: process) }

  /// The clock of the world, with the machine's calendar.
  public var time: any TimeSource { process.time }

  /// Performs a call that the simulation cannot order, such as one of a real database or file system, as one step: all
  /// simulated tasks wait meanwhile.
  ///
  /// Stages that use threads, queues or tasks of their own have to make all such calls in this way. The call must not wait for
  /// ``time`` or for a task of the simulation, which does not go on meanwhile. It is cancelled with the simulation.
  /// - Throws: The errors of `work`.
  public func outside<Success: Sendable>(
    _ work: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    try await process.system.world.scheduler.outside(on: process.executor, work)
  }

  /// Returns a random number that follows from the seed, for stages that need some.
  public func random(in range: ClosedRange<Double>) -> Double {
    process.system.world.random(.stages) { Double.random(in: range, using: &$0) }
  }

  /// Returns an object that survives the process, such as a ledger of your own: it is made once for each world.
  ///
  /// - Precondition: Objects of different types have different names.
  public func keep<Value: Sendable>(_ name: String, _ make: () -> Value) -> Value { process.system.keep(name, make) }
}
