public import DownpipeCore

/// What a simulated user does. Downloads are named by a number; their ids are `d0`, `d1` and so on.
public enum SimulatedCommand: Sendable, Hashable {
  /// Adds a download of a file of the world, or adds it again.
  ///
  /// - Parameters:
  ///   - number: The number of the download.
  ///   - file: The number of the file among all files of the world's servers; larger numbers begin again.
  ///   - priority: Its priority.
  ///   - after: The number of a download that has to finish before.
  ///   - with: What else the request asks for.
  case add(Int, file: Int, priority: Priority = .normal, after: Int? = nil, with: RequestOptions = [])
  /// Pauses a download.
  case pause(Int)
  /// Resumes a download.
  case resume(Int)
  /// Starts a download by hand.
  case start(Int, preempting: Preemption = .none)
  /// Restarts a download.
  case restart(Int)
  /// Asks whether a finished file has changed.
  case refresh(Int)
  /// Cancels a download.
  case cancel(Int)
  /// Deletes a finished file, and keeps its record.
  case discard(Int)
  /// Removes a download.
  case remove(Int, deletingFile: Bool)
  /// Changes the priority of a download.
  case prioritize(Int, Priority)
  /// Changes the URL of a download to that of another file.
  case redirect(Int, file: Int)
  /// Renames a download.
  case rename(Int)
  /// Verifies a finished file.
  case verify(Int)
  /// Adds several downloads in one transaction: of a file of the world and of those that follow it.
  case addTogether([Int], file: Int)
  /// Does the same to several downloads in one transaction.
  case bulk(BulkOperation, of: BulkSelection)
  /// Verifies a finished file, and has it fetched again if it is damaged.
  case repair(Int)
  /// Copies the bytes of an unfinished download, and adds another download that continues with them.
  case handOver(Int, to: Int)
  /// Changes the request of a download.
  case change(Int, RequestChange)
  /// Waits for the file of a download, at most for a minute.
  case awaitFile(Int)
  /// Pauses all downloads.
  case pauseAll
  /// Resumes all downloads.
  case resumeAll
  /// Restarts all downloads.
  case restartAll
  /// Asks whether any finished file has changed.
  case refreshAll
  /// Cancels all downloads.
  case cancelAll
  /// Removes all downloads.
  case removeAll
  /// Changes the priority of all downloads.
  case prioritizeAll(Priority)
  /// Suspends all downloads of the process, or ends that.
  case suspend(Bool)
  /// Opens or closes the gate of the process.
  case gate(isOpen: Bool)
  /// Replaces the limits of the process.
  case limit(concurrent: Int, perHost: Int, excess: Excess)
  /// Replaces another stage of the process by an equal one.
  case replaceStage(ReplacedStage)
  /// Removes a stage of the process, and puts it back after a number of milliseconds.
  case removeStage(RemovedStage, milliseconds: Int)
  /// Changes the settings of the downloader, which its ledger keeps: the bytes per second of all transfers, and the
  /// connections of a download.
  case set(bytesPerSecond: Int?, connections: Int)
  /// Replaces a file on its server by another version.
  case swapFile(Int)
  /// Reads statuses, counts and totals, and looks for orphans.
  case look
  /// Removes orphaned partials.
  case removeOrphans
  /// Watches the events of a download until they end.
  case watch(Int)
  /// Watches the changes of all downloads until the downloader ends.
  case watchAll
  /// Waits until the downloader is idle, at most for a minute.
  case waitUntilIdle
  /// Sets the machine's calendar, by this many seconds.
  case setDate(by: Int)
  /// Waits for a number of milliseconds.
  case wait(milliseconds: Int)
  /// Shuts the downloader down, and opens another one.
  case reopen
}

extension SimulatedCommand: CustomStringConvertible {
  /// The command as Swift source, without default arguments.
  public var description: String {
    switch self {
    case .add(let number, let file, let priority, let after, let options):
      "add(\(number), file: \(file)" + (priority == .normal ? "" : ", priority: .init(rawValue: \(priority.rawValue))")
        + (after.map { ", after: \($0)" } ?? "") + (options.isEmpty ? "" : ", with: \(options)") + ")"
    case .pause(let number): "pause(\(number))"
    case .resume(let number): "resume(\(number))"
    case .start(let number, let preemption): "start(\(number), preempting: .\(preemption))"
    case .restart(let number): "restart(\(number))"
    case .refresh(let number): "refresh(\(number))"
    case .cancel(let number): "cancel(\(number))"
    case .discard(let number): "discard(\(number))"
    case .remove(let number, let deletingFile): "remove(\(number), deletingFile: \(deletingFile))"
    case .prioritize(let number, let priority): "prioritize(\(number), .init(rawValue: \(priority.rawValue)))"
    case .redirect(let number, let file): "redirect(\(number), file: \(file))"
    case .rename(let number): "rename(\(number))"
    case .verify(let number): "verify(\(number))"
    case .addTogether(let numbers, let file): "addTogether(\(numbers), file: \(file))"
    case .bulk(let operation, let selection): "bulk(.\(operation.rawValue), of: \(selection))"
    case .repair(let number): "repair(\(number))"
    case .handOver(let number, let other): "handOver(\(number), to: \(other))"
    case .change(let number, let change): "change(\(number), .\(change.rawValue))"
    case .awaitFile(let number): "awaitFile(\(number))"
    case .pauseAll: "pauseAll"
    case .resumeAll: "resumeAll"
    case .restartAll: "restartAll"
    case .refreshAll: "refreshAll"
    case .cancelAll: "cancelAll"
    case .removeAll: "removeAll"
    case .prioritizeAll(let priority): "prioritizeAll(.init(rawValue: \(priority.rawValue)))"
    case .suspend(let isSuspended): "suspend(\(isSuspended))"
    case .gate(let isOpen): "gate(isOpen: \(isOpen))"
    case .limit(let concurrent, let perHost, let excess):
      "limit(concurrent: \(concurrent), perHost: \(perHost), excess: .\(excess))"
    case .replaceStage(let stage): "replaceStage(.\(stage.rawValue))"
    case .removeStage(let stage, let time): "removeStage(.\(stage.rawValue), milliseconds: \(time))"
    case .set(let rate, let connections):
      "set(bytesPerSecond: \(rate.map(String.init) ?? "nil"), connections: \(connections))"
    case .swapFile(let file): "swapFile(\(file))"
    case .look: "look"
    case .removeOrphans: "removeOrphans"
    case .watch(let number): "watch(\(number))"
    case .watchAll: "watchAll"
    case .waitUntilIdle: "waitUntilIdle"
    case .setDate(let seconds): "setDate(by: \(seconds))"
    case .wait(let milliseconds): "wait(milliseconds: \(milliseconds))"
    case .reopen: "reopen"
    }
  }
}
