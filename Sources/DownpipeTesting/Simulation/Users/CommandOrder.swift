@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

/// What commands have said of downloads, in the order of their calls: from it follows the state in which each must be.
final class CommandOrder: Sendable {
  /// What a command does to a download, if it has an effect.
  enum Effect: Sendable {
    case add, pause, resume, restart, cancel, remove
    /// As `cancel`, but a cancelled download may have the file of an earlier fetch.
    case discard
    /// The download may have any state afterwards.
    case unknown
  }

  enum Scope: Sendable {
    case one(DownloadID)
    case some(Set<DownloadID>)
    case all
  }

  /// What a command has returned.
  enum Result: Sendable {
    /// Whether it had an effect.
    case effect(Bool)
    /// It was refused, because there is no such download.
    case refused
    /// It failed, and may have had an effect.
    case failed
  }

  fileprivate struct Command: Sendable {
    let effect: Effect
    let scope: Scope
    /// The URL for which it asks; `nil` if it leaves the URL as it is.
    let url: URL?
    let begin: Int
    /// Its place in the order in which commands came to the engine: the calls of two users may overtake each other on
    /// their way.
    var arrival: Int
    var end: Int?
    var result: Result?
  }

  /// A command on its way to the engine.
  struct Call: Sendable {
    fileprivate let order: CommandOrder
    fileprivate let number: Int

    /// Notes that the command has come to the engine.
    func arrived() {
      order.state.withLock { state in
        state.arrivals += 1
        state.commands[number].arrival = state.arrivals
      }
    }
  }

  /// The command that the present task gives.
  @TaskLocal static var current: Call?

  func call(_ number: Int) -> Call { Call(order: self, number: number) }

  private struct State: Sendable {
    var commands: [Command] = []
    var arrivals = 0
  }

  /// What is known of a download.
  fileprivate enum Knowledge: Sendable {
    case gone, free, paused, cancelled
    /// Paused, unless it had ended before.
    case pausedOrEnded
    /// Cancelled, unless it had finished before.
    case cancelledOrFinished
    case unknown

    func agrees(with phase: DownloadState.Phase?) -> Bool {
      switch self {
      case .gone: phase == nil
      case .free: phase != nil && phase != .paused && phase != .cancelled
      case .paused: phase == .paused
      case .cancelled: phase == .cancelled
      case .pausedOrEnded: phase == .paused || phase?.isFinal == true
      case .cancelledOrFinished: phase == .cancelled || phase == .finished
      case .unknown: true
      }
    }

    /// Whether there must be such a download.
    var isPresent: Bool {
      switch self {
      case .gone, .unknown: false
      default: true
      }
    }

    var text: String {
      switch self {
      case .gone: "removed"
      case .free: "neither paused nor cancelled"
      case .paused: "paused"
      case .cancelled: "cancelled"
      case .pausedOrEnded: "paused, or have ended"
      case .cancelledOrFinished: "cancelled or finished"
      case .unknown: "anything"
      }
    }
  }

  private let state = Mutex(State())

  /// Notes the call of a command, and returns its number.
  func begin(_ effect: Effect, _ scope: Scope, _ url: URL? = nil, at step: Int) -> Int {
    state.withLock { state in
      state.arrivals += 1
      state.commands.append(
        Command(effect: effect, scope: scope, url: url, begin: step, arrival: state.arrivals))
      return state.commands.count - 1
    }
  }

  func end(_ number: Int, _ result: Result, at step: Int) {
    state.withLock { state in (state.commands[number].result, state.commands[number].end) = (result, step) }
  }

  /// Compares what follows from the commands with the downloads.
  func check(_ records: [DownloadRecord], _ report: (Invariant.Name, String) -> Void) {
    let records = Dictionary(records.map { ($0.id, $0) }) { $1 }
    let commands = state.withLock { $0.commands }.sorted { $0.arrival < $1.arrival }
    let ids = Set(
      commands.compactMap { command -> DownloadID? in
        if case .one(let id) = command.scope { id } else { nil }
      }
        + commands.flatMap { command -> [DownloadID] in
          if command.effect == .add, case .some(let ids) = command.scope { Array(ids) } else { [] }
        })
    for id in ids.sorted(by: { $0.rawValue < $1.rawValue }) {
      var knowledge = Knowledge.gone
      for (index, command) in commands.enumerated() where command.concerns(id) {
        // The order of an addition and a command that overlap is not determined.
        let isOverlapped = commands.enumerated().contains { other, theirs in
          other != index && theirs.concerns(id) && theirs.overlaps(command)
            && (theirs.isUnordered || command.isUnordered)
        }
        if let wrong = knowledge.contradiction(of: command, isOverlapped) {
          report(.commandResult, "\(command.effect) of \(id) \(wrong), although it must have been \(knowledge.text)")
        }
        knowledge = isOverlapped ? .unknown : knowledge.after(command)
      }
      let record = records[id]
      if !knowledge.agrees(with: record?.phase) {
        report(
          .commandOrder, "\(id) must be \(knowledge.text), but it is \(record?.phase.rawValue ?? "not there")")
      }
      if let url = url(of: id, after: commands), let found = record?.request.url, found != url {
        report(.commandOrder, "\(id) must be a download of \(url), but it is one of \(found)")
      }
    }
  }

  /// The URL that a download must have; `nil` if the order of commands does not determine it.
  private func url(of id: DownloadID, after commands: [Command]) -> URL? {
    // A command that was refused has changed nothing.
    let asking = commands.filter { command in
      let mayChange = command.url != nil || command.effect == .remove || command.effect == .add
      guard command.concerns(id), mayChange else { return false }
      if case .refused? = command.result { return false }
      return true
    }
    var wish = Wish()
    for (index, command) in asking.enumerated() {
      let isOverlapped = asking.enumerated().contains { $0 != index && $1.overlaps(command) }
      if isOverlapped { wish = Wish(isThere: true) } else { wish.take(command) }
    }
    return wish.current
  }

  /// Which file a download is to be.
  private struct Wish {
    var isThere = false
    /// The URL of the last addition, if it is known.
    var added: URL?
    /// The present URL, if it is known.
    var current: URL?

    mutating func take(_ command: Command) {
      guard case .effect(let hadEffect)? = command.result else { return self = Wish(isThere: true) }
      guard hadEffect else { return }
      switch command.effect {
      case .remove: self = Wish()
      case .add:
        // To add what was added before leaves later changes as they are.
        if command.url == nil {
          current = nil
        } else if !isThere || added != nil && command.url != added {
          current = command.url
        } else if added == nil {
          current = nil
        }
        (isThere, added) = (true, command.url)
      default: current = command.url
      }
    }
  }
}

extension CommandOrder.Command {
  fileprivate func concerns(_ id: DownloadID) -> Bool {
    switch scope {
    case .one(let own): own == id
    case .some(let ids): ids.contains(id)
    case .all: true
    }
  }

  fileprivate var isUnordered: Bool {
    switch effect {
    case .add, .unknown: true
    default: false
    }
  }

  fileprivate func overlaps(_ other: CommandOrder.Command) -> Bool {
    begin <= other.end ?? .max && other.begin <= end ?? .max
  }
}

extension CommandOrder.Knowledge {
  /// What is wrong with the result of a command; `nil` if it may be right.
  /// - Parameter isOverlapped: Whether another command may have come before, such as the addition of the download.
  fileprivate func contradiction(of command: CommandOrder.Command, _ isOverlapped: Bool) -> String? {
    guard case .one = command.scope else { return nil }
    if case .refused? = command.result {
      // There must have been such a download.
      let concerns = command.effect != .add && command.effect != .unknown && !isOverlapped
      return concerns && isPresent ? "was refused" : nil
    }
    guard case .effect(let hadEffect)? = command.result else { return nil }
    switch (self, command.effect, hadEffect) {
    case (.paused, .resume, false), (.paused, .cancel, false), (.paused, .restart, false), (.paused, .discard, false),
      (.cancelled, .restart, false), (.paused, .remove, false), (.cancelled, .remove, false):
      return "had no effect"
    case (.gone, .pause, true), (.gone, .resume, true), (.gone, .restart, true), (.gone, .cancel, true),
      (.gone, .remove, true), (.gone, .discard, true):
      return isOverlapped ? nil : "had an effect"
    case (.paused, .pause, true), (.cancelled, .pause, true), (.cancelled, .resume, true), (.cancelled, .cancel, true):
      return "had an effect"
    default: return nil
    }
  }

  /// What is known after a command.
  fileprivate func after(_ command: CommandOrder.Command) -> Self {
    let isOne = if case .one = command.scope { true } else { false }
    switch command.result {
    case .refused: return self
    case nil, .failed: return .unknown
    case .effect(let hadEffect):
      if isOne, !hadEffect { return command.effect == .unknown ? .unknown : self }
      return after(command.effect, ofAll: !isOne)
    }
  }

  private func after(_ effect: CommandOrder.Effect, ofAll: Bool) -> Self {
    if self == .gone, effect != .add, effect != .unknown { return ofAll ? .gone : .unknown }
    switch effect {
    case .add:
      return switch self {
      case .gone: .free
      // What has finished starts again if it is asked for another file.
      case .pausedOrEnded, .cancelledOrFinished: .unknown
      default: self
      }
    case .unknown: return .unknown
    case .remove: return .gone
    case .restart: return self == .unknown && ofAll ? .unknown : .free
    case .pause:
      guard ofAll else { return .paused }
      return switch self {
      case .free: .pausedOrEnded
      default: self
      }
    case .resume:
      guard ofAll else { return .free }
      return switch self {
      case .paused: .free
      case .pausedOrEnded: .unknown
      default: self
      }
    case .discard: return .cancelled
    case .cancel:
      guard ofAll else { return .cancelled }
      return switch self {
      case .paused: .cancelled
      case .free, .pausedOrEnded: .cancelledOrFinished
      default: self
      }
    }
  }
}
