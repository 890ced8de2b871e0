#if SQLite
  import CFaultyVFS
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation

  @testable import DownpipeFiles

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The disk of one run's storage and ledger. It numbers their calls, and makes one of them fail, or makes it the last
  /// one before the simulated end of the process.
  final class FaultyDisk: Sendable {
    /// How a call fails.
    enum Fault: String, Sendable {
      /// The device failed (EIO); any call.
      case broken
      /// The disk is full (ENOSPC); only calls that can need space.
      case full
    }

    /// The planned fault.
    enum Plan: Sendable {
      case nothing
      /// The call fails once.
      case fail(Int, Fault)
      /// The call is not made, or writes only half of its bytes, and no later call is made.
      case stop(Int)

      var fault: Fault? { if case .fail(_, let fault) = self { fault } else { nil } }
    }

    /// A call, for messages of failed tests.
    struct Call: Sendable, CustomStringConvertible {
      let number: Int
      let name: String
      let path: String
      var description: String { "call \(number), \(name) \(path)" }
    }

    private struct State {
      var count = 0
      var hit: Call?
      var isDead = false
    }

    private enum Outcome {
      case made, failed, torn, dead
    }

    let plan: Plan
    /// The state of the medium, in tests with a loss of power.
    let medium: Medium?
    private let pace: Pace
    private let state = Watched(State())

    init(_ plan: Plan = .nothing, pace: Pace, medium: Medium? = nil) {
      self.plan = plan
      self.pace = pace
      self.medium = medium
    }

    /// The numbered calls.
    var count: Int { state.value.count }
    /// The disturbed call.
    var hit: Call? { state.value.hit }
    /// Whether the process counts as ended.
    var isDead: Bool { state.value.isDead }

    /// Returns when the process counts as ended, or the waiting task is cancelled.
    func death() async { await state.wait(until: \.isDead) }

    private func next(_ name: String, _ path: String, needsRoom: Bool, isNumbered: Bool = true) -> Outcome {
      let outcome = state.update { state -> Outcome in
        if state.isDead { return .dead }
        guard isNumbered, plan.fault != .full || needsRoom else { return .made }
        state.count += 1
        switch plan {
        case .fail(state.count, _):
          state.hit = Call(number: state.count, name: name, path: path)
          return .failed
        case .stop(state.count):
          state.hit = Call(number: state.count, name: name, path: path)
          state.isDead = true
          return .torn
        default:
          return .made
        }
      }
      if outcome != .made { pace.hurry() }
      return outcome
    }

    // MARK: Storage

    /// The file system for the storage.
    var system: FileSystem {
      FileSystem { [self] call, path in
        let needsRoom =
          switch call {
          case .open, .openUnnamed, .write, .flush, .flushFolder, .close, .rename, .renameToFree, .link, .makeFolder,
            .makeLink:
            true
          default: false
          }
        switch next("storage \(call)", path, needsRoom: needsRoom) {
        case .made:
          medium?.willCall(call, path)
          return .proceed
        case .torn where call == .write: return .atMost(1000)
        case .failed: return .fail(plan.fault == .full ? ENOSPC : EIO)
        case .torn, .dead: return .fail(EIO)
        }
      }
    }

    // MARK: Ledger

    /// Decides about a call of SQLite.
    func verdict(_ call: faulty_vfs_call, _ path: String, _ size: Int64) -> faulty_vfs_verdict {
      // Locks are in memory, and there are many of them.
      let isNumbered = call != faulty_vfs_lock && call != faulty_vfs_shm_lock
      let needsRoom = call == faulty_vfs_write || call == faulty_vfs_shm_map
      switch next("ledger \(call.name)", path, needsRoom: needsRoom, isNumbered: isNumbered) {
      case .made:
        if call == faulty_vfs_sync { medium?.willFlush(file: path) }
        return faulty_vfs_verdict(code: 0, torn_bytes: 0)
      case .failed:
        return faulty_vfs_verdict(code: plan.fault == .full ? 13 : call.errorCode, torn_bytes: 0)  // SQLITE_FULL
      case .torn:
        return faulty_vfs_verdict(code: call.errorCode, torn_bytes: Int32(clamping: size / 2))
      case .dead:
        return faulty_vfs_verdict(code: call.errorCode, torn_bytes: 0)
      }
    }
  }

  extension faulty_vfs_call {
    fileprivate var name: String {
      switch self {
      case faulty_vfs_open: "open"
      case faulty_vfs_read: "read"
      case faulty_vfs_write: "write"
      case faulty_vfs_truncate: "truncate"
      case faulty_vfs_sync: "sync"
      case faulty_vfs_size: "size"
      case faulty_vfs_lock: "lock"
      case faulty_vfs_delete: "delete"
      case faulty_vfs_access: "access"
      case faulty_vfs_shm_map: "map index"
      case faulty_vfs_shm_lock: "lock index"
      default: "delete index"
      }
    }

    /// SQLite's result code for this call's failure: SQLITE_CANTOPEN, or SQLITE_IOERR with the call's own number.
    fileprivate var errorCode: Int32 {
      if self == faulty_vfs_open { return 14 }
      let number: Int32 =
        switch self {
        case faulty_vfs_read: 1
        case faulty_vfs_write: 3
        case faulty_vfs_sync: 4
        case faulty_vfs_truncate: 6
        case faulty_vfs_size: 7
        case faulty_vfs_delete: 10
        case faulty_vfs_access: 13
        case faulty_vfs_lock: 15
        case faulty_vfs_shm_map: 21
        case faulty_vfs_shm_lock: 20
        default: 0
        }
      return 10 | number << 8
    }
  }
#endif
