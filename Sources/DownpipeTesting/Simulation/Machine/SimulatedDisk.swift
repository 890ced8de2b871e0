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
    /// What steps were given that have returned a path at which nothing is.
    var unseen: Set<String> = []
    /// The paths of publications by their numbers, as a file's own identity shows them.
    var publications: [Int: String] = [:]
    var lastPublication = 0
    var lastOpening = 0
    var lastExport = 0
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
    world.noteFailure("disk")
    world.timeline.note(.disk, text: "\(operation) fails")
    throw DownloadError(.storage, "\(operation): input/output error")
  }

  /// A path at which there has been no file.
  func makeExportPath() -> String {
    withState { state in
      state.lastExport += 1
      return "\(SimulatedStorage.root)/.exports/\(state.lastExport)"
    }
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
