public import DownpipeCore
import Synchronization

/// A line of the history of a simulated world.
public struct TimelineEntry: Sendable, Hashable {
  /// What kind of event it is.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A command of a user, and its result.
    case command
    /// A request to a server.
    case request
    /// A reply, or the end of its body.
    case reply
    /// Bytes that were written to a partial, flushed, published or removed.
    case disk
    /// A change of the ledger.
    case ledger
    /// The state of a download, as watchers learn it.
    case state
    /// What the engine of a process is told: calls, outcomes, answers of the ledger, timers.
    case engine
    /// A process that starts or ends.
    case process
    /// A change of the surroundings: the network, a gate, the calendar.
    case world
  }

  /// The virtual time.
  public let time: Duration
  /// The process, counted from 1; `nil` for events that concern none.
  public let process: Int?
  /// The kind of the event.
  public let kind: Kind
  /// The download; `nil` for events that concern none.
  public let id: DownloadID?
  /// What happened.
  public let text: String
}

/// Collects what happens in a simulated world: always as a hash, by which two runs are compared, and as text on request.
final class Timeline: Sendable {
  fileprivate struct State: Sendable {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    var count = 0
    var entries: [TimelineEntry] = []
  }

  private let clock: SimulatedClock
  private let isRecording: Bool
  private let state = Mutex(State())
  /// The longest history that is kept as text.
  private static let most = 100_000

  init(_ clock: SimulatedClock, isRecording: Bool) {
    self.clock = clock
    self.isRecording = isRecording
  }

  /// The hash of everything that was noted, the scheduling decisions included.
  var hash: UInt64 { state.withLock { $0.hash } }

  var entries: [TimelineEntry] { state.withLock { $0.entries } }

  /// Notes an event. The numbers tell two runs apart; the text is only made if it is kept.
  func note(
    _ kind: TimelineEntry.Kind, _ process: Int? = nil, _ id: DownloadID? = nil, numbers: Int64...,
    text: @autoclosure () -> String
  ) {
    let now = clock.now
    let entry =
      isRecording ? TimelineEntry(time: now, process: process, kind: kind, id: id, text: text()) : nil
    state.withLock { state in
      state.count += 1
      state.mix(UInt64(process ?? 0))
      for byte in kind.rawValue.utf8 { state.mix(UInt64(byte)) }
      state.mix(UInt64(bitPattern: now.components.seconds) ^ UInt64(bitPattern: now.components.attoseconds))
      if let id { for byte in id.rawValue.utf8 { state.mix(UInt64(byte)) } }
      for number in numbers { state.mix(UInt64(bitPattern: number)) }
      if let entry, state.entries.count < Self.most { state.entries.append(entry) }
    }
  }

  /// Adds a scheduling decision to the hash.
  func mix(_ value: UInt64) { state.withLock { $0.mix(value) } }
}

extension Timeline.State {
  fileprivate mutating func mix(_ value: UInt64) { hash = (hash ^ value) &* 0x100_0000_01B3 }
}
