import DownpipeCore
import Synchronization

/// A gate that simulated users open and close.
final class SimulatedGate: Gate {
  private struct State: Sendable {
    var isOpen = true
    var last = 0
    var watchers: [Int: @Sendable (GateRule) -> Void] = [:]
  }
  private let state = Mutex(State())
  private let world: World
  private let number: Int

  init(world: World, number: Int) {
    self.world = world
    self.number = number
  }

  var name: String { "SimulatedGate" }

  var isOpen: Bool { state.withLock { $0.isOpen } }

  func set(isOpen: Bool) {
    world.timeline.note(.world, number, numbers: isOpen ? 1 : 0, text: isOpen ? "the gate opens" : "the gate closes")
    let watchers = state.withLock { state in
      state.isOpen = isOpen
      return state.watchers.sorted { $0.key < $1.key }.map(\.value)
    }
    for watcher in watchers { watcher(rule) }
  }

  private var rule: GateRule { isOpen ? .open : .closed("SimulatedGate: closed by a user") }

  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    let watcher = state.withLock { state in
      state.last += 1
      state.watchers[state.last] = publish
      return state.last
    }
    publish(rule)
    let (never, continuation) = AsyncStream<Never>.makeStream()
    defer { continuation.finish() }
    for await _ in never {}
    state.withLock { $0.watchers[watcher] = nil }
    throw CancellationError()
  }
}

/// Limits that simulated users change.
struct SimulatedLimits: AdmissionPolicy, Hashable {
  /// Those at the beginning and at the end of a simulation.
  static let usual = SimulatedLimits(concurrent: 3, perHost: 2)
  /// Those of a pipeline without admission policies.
  static let none = SimulatedLimits(concurrent: 5, perHost: 5)

  var concurrent: Int
  var perHost: Int

  var name: String { "SimulatedLimits" }
  var maximumConcurrent: Int? { concurrent }
  var maximumPerHost: Int? { perHost }

  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    if running.total >= concurrent { return .full("\(concurrent) downloads run") }
    if running.perHost[candidate.host, default: 0] >= perHost { return .hostFull("\(perHost) from this host run") }
    return .admitted
  }
}

/// Fetches files over several connections if their requests have a tag.
struct SimulatedSegments: SegmentPolicy, SegmentSession, Hashable {
  /// The tag of the requests.
  static let tag = "segments"

  var maximumConnections = 3

  func start(size: Int64, of transfer: TransferContext) -> (any SegmentSession)? {
    transfer.candidate.tags.contains(Self.tag) ? self : nil
  }

  func connections(after measurement: SegmentMeasurement) -> Int { maximumConnections }
}

/// A rate for all transfers of a process together.
struct SimulatedRate: RatePolicy, Hashable {
  static let usualName = "SimulatedRate"

  var bytesPerSecond: Int
  var name = "SimulatedRate"

  func start(time: any TimeSource) -> any RateSession { Session(bytesPerSecond: bytesPerSecond) }

  private final class Session: RateSession {
    private let bytesPerSecond: Int
    /// When the next byte may arrive.
    private let next = Mutex(Duration.zero)

    init(bytesPerSecond: Int) { self.bytesPerSecond = bytesPerSecond }

    func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
      next.withLock { next in
        next = max(next, now) + .seconds(Double(bytes) / Double(bytesPerSecond))
        return next - now
      }
    }
  }
}

/// The settings of a simulated downloader, which users change and its ledger keeps.
struct SimulatedSettings: Codable, Sendable, Hashable {
  var bytesPerSecond: Int?
  var connections = 3

  func apply(to parts: inout PipelineParts) {
    if let bytesPerSecond {
      parts.rates.append(SimulatedRate(bytesPerSecond: bytesPerSecond, name: "SimulatedRate of the settings"))
    }
    parts.segmentPolicies = parts.segmentPolicies.map {
      $0 is SimulatedSegments ? SimulatedSegments(maximumConnections: connections) : $0
    }
  }
}

/// An observer that may block for minutes.
struct SimulatedObserver: Observer {
  let process: SimulatedProcess

  var name: String { "SimulatedObserver" }

  func observe(_ events: AsyncStream<DownloadEvent>) async { for await _ in events { await process.mayBlock() } }
}

/// A step that copies the file and checks its digest. It may fail early or late, return a path at which nothing is, and
/// block for minutes.
struct SimulatedStep: PostProcessor, DigestVerifying {
  typealias Input = File
  typealias Output = File

  let process: SimulatedProcess

  var name: String { "SimulatedStep" }
  private var world: World { process.system.world }
  private var disk: SimulatedDisk { process.system.disk }

  private enum Mistake: String, CaseIterable {
    case failsEarly = "early"
    case failsLate = "late"
    case returnsNothing = "no output"
    case returnsNothingElsewhere = "no output, outside of the workspace"
    case returnsAFolder = "wrong kind"

    /// Whether the result is no output.
    var isOfPath: Bool { self != .failsEarly && self != .failsLate }
  }

  func verifies(_ algorithm: DigestAlgorithm) -> Bool { algorithm == SparseBytes.algorithm }

  func process(_ input: File, in context: ProcessingContext) async throws -> File {
    try await process.time.sleep(for: world.duration(in: .zero ... .milliseconds(500), .steps))
    try process.checkAlive()
    await process.mayBlock()
    try process.checkAlive()
    var mistake: Mistake?
    if world.happens(world.configuration.stepFailures, .steps) {
      // A step that always fails does it at once.
      let mistakes = world.configuration.stepFailures < 1 ? Mistake.allCases : [.failsEarly]
      mistake = world.random(.steps) { mistakes.randomElement(using: &$0) }
      world.coverage.count("fault: step, \(mistake.map(\.rawValue) ?? "")")
    }
    if mistake == .failsEarly { throw DownloadError(.processing, "the step fails") }
    guard let path = input.path, let workspace = context.workspace else {
      throw DownloadError(.processing, "there is no file")
    }
    let stored = disk.withState { state in
      SimulatedPartial.key(of: path, among: state.partials.keys).flatMap { state.partials[$0] } ?? state.files[path]
    }
    guard var stored else { throw DownloadError(.storage, "\(path) does not exist") }
    for digest in context.digests where stored.bytes.digest != digest {
      throw DownloadError(.digestMismatch, "the digest is not the expected one")
    }
    for digest in context.digests {
      context.confirm(digest, from: context.request.expectedDigests.contains(digest) ? .request : .server)
    }
    stored.holder = nil
    let isDurable = context.durability == .power
    if isDurable { (stored.durable, stored.pending) = (stored.bytes, []) }
    (stored.isNamed, stored.isNameDurable) = (true, isDurable)
    let output = "\(workspace)/copy"
    disk.withState { [stored, mistake] state in
      state.files[output] = stored
      if mistake?.isOfPath == true { state.unseen.insert(path) } else { state.unseen.remove(path) }
    }
    switch mistake {
    case .failsLate: throw DownloadError(.processing, "the step fails at its end")
    case .returnsNothing: return File(path: output + "-other", name: input.name)
    case .returnsNothingElsewhere:
      return File(path: "\(SimulatedStorage.root)/elsewhere/\(input.name)", name: input.name)
    case .returnsAFolder: return File(Artifact(kind: .directory, location: .path(output), name: input.name))
    case .failsEarly, nil: return File(path: output, name: input.name, size: .known(stored.bytes.size))
    }
  }
}
