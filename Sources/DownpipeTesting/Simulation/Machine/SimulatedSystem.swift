import DownpipeCore
import Foundation
import Synchronization

/// What a simulated machine has beside its processes, and what survives their deaths.
final class SimulatedSystem: Sendable {
  private struct State: Sendable {
    var kept: [String: any Sendable] = [:]
    var incarnations = 0
    var processes: [Int: SimulatedProcess] = [:]
  }

  let world: World
  let network: SimulatedNetwork
  let disk: SimulatedDisk
  let checks: InvariantChecks
  let ledger = MemoryLedger()
  /// The order of the calls of the ledger that its processes share.
  let ledgerCalls = OneByOne()
  private let state = Mutex(State())

  init(_ world: World, _ invariants: [Invariant]) {
    self.world = world
    network = SimulatedNetwork(world)
    disk = SimulatedDisk(world)
    checks = InvariantChecks(world, network, disk, invariants)
  }

  /// Returns the object with a name, which is made once for each world.
  func keep<Value: Sendable>(_ name: String, _ make: () -> Value) -> Value {
    if let known = state.withLock({ $0.kept[name] }) {
      guard let value = known as? Value else { preconditionFailure("“\(name)” is kept as a \(type(of: known))") }
      return value
    }
    let value = make()
    state.withLock { $0.kept[name] = value }
    return value
  }

  // MARK: Processes

  /// The living processes by number.
  var processes: [SimulatedProcess] { state.withLock { $0.processes.sorted { $0.key < $1.key }.map(\.value) } }

  /// Starts a process.
  func start(_ number: Int) -> SimulatedProcess {
    let incarnation = state.withLock { state in
      state.incarnations += 1
      return state.incarnations
    }
    let process = SimulatedProcess(number, incarnation: incarnation, on: self)
    state.withLock { $0.processes[number] = process }
    world.timeline.note(.process, number, numbers: Int64(incarnation), text: "starts")
    return process
  }

  func ended(_ process: SimulatedProcess) {
    state.withLock { state in
      if state.processes[process.number] === process { state.processes[process.number] = nil }
    }
  }

  /// Ends processes between two jobs, without a chance to do anything.
  func crash(_ crash: SimulatedWorld.Crash) {
    var victims = processes
    guard !victims.isEmpty else { return }
    if crash == .kill {
      let index = world.random(.crashes) { Int.random(in: 0..<victims.count, using: &$0) }
      victims = [victims[index]]
    }
    world.coverage.count("crash: \(crash)")
    for victim in victims {
      world.timeline.note(.process, victim.number, text: crash == .kill ? "is killed" : "loses its power")
      victim.die()
    }
    if crash == .powerLoss { disk.losePower() }
    for victim in victims { victim.bury() }
  }
}
