import Downpipe
import Foundation

/// Runs a downloader for one command: adds the downloads, follows them, and shuts down.
struct DownloadRun: Sendable {
  enum Ending: Sendable, Hashable {
    case complete(Tally)
    case interrupted(Tally)
    case readerGone

    var exitStatus: Int32 {
      switch self {
      case .complete(let tally): tally.failed == 0 ? 0 : 1
      case .interrupted, .readerGone: Interruption.exitStatus
      }
    }
  }

  /// Adds downloads to `downloader`, each after `monitor` has taken it.
  typealias Feed = @Sendable (_ downloader: Downloader, _ monitor: RunMonitor) async throws -> Void

  var pipeline: Pipeline
  /// What the pipeline was made from.
  var settings: PipelineSettings
  var monitor: RunMonitor
  /// Which downloads of the ledger run; by default those that this command adds or resumes.
  var scope = LeaseScope.own
  /// Whether the output moves even when nothing changes.
  var isAnimated: Bool

  private enum Step: Sendable {
    case over
    case interrupted
    case nothing
  }

  /// Runs until every download of the command has ended, or a signal interrupts it.
  func run(_ interruption: Interruption = Interruption(), feed: @escaping Feed) async throws -> Ending {
    var options = settings.options
    options.scope = scope
    let downloader = try await Downloader.starting(pipeline, options: options)
    do {
      let isInterrupted = try await follow(downloader, interruption, feed)
      let tally = await monitor.result
      if isInterrupted {
        // An output that cannot be written changes nothing: the ledger has everything.
        try? await monitor.end()
        await warnOfTrust()
        return .interrupted(tally)
      }
      try await monitor.end()
      await warnOfTrust()
      return .complete(tally)
    } catch is OutputFile.Abandoned {
      return .interrupted(await monitor.result)
    } catch is OutputFile.BrokenPipe {
      try? await monitor.end()
      return .readerGone
    } catch {
      try? await monitor.end()
      throw error
    }
  }

  /// At the end: a display of progress does not cover it.
  private func warnOfTrust() async {
    let count = await monitor.untrusted
    guard count > 0 else { return }
    let were = count == 1 ? "1 download was" : "\(count) downloads were"
    OutputFile.warn("\(were) added with --untrusted, and its rules still applied; “downpipe remove” ends them")
  }

  /// Follows the downloads. The downloader has shut down when this returns or throws.
  /// - Returns: Whether a signal interrupted.
  private func follow(
    _ downloader: Downloader, _ interruption: Interruption, _ feed: @escaping Feed
  ) async throws -> Bool {
    let monitor = monitor
    // Before the first download is added: no change is missed.
    let changes = downloader.changes(every: .milliseconds(100), followingQueue: false, beginningWithSnapshot: false)
    // Not a part of the group, whose tasks are cancelled before the downloader shuts down: the stream ends with the
    // downloader, after the last changes.
    let following = Task {
      for await batch in changes {
        try await monitor.receive(batch.statuses)
        if !batch.isComplete { try await monitor.reconcile(downloader) }
        if batch.reasonsMayHaveChanged { try await monitor.showReasons(downloader) }
        if await monitor.isOver { return }
      }
    }

    // As the changes: its end is that of the downloader.
    let refusals = downloader.refusals()
    // With --keep-encoded, coded bytes are what was asked for.
    let keepsCodings = settings.network.keepsContentCoding
    let shown: Set<DownloadError.Code> = keepsCodings ? [.unconfirmedEnd] : [.keptContentCoding, .unconfirmedEnd]
    let notices = Task { await Notices(monitor: monitor, codes: shown).show(refusals) }
    downloader.noteRefusals(monitor.unconfirmedEnds.note)

    return try await withThrowingTaskGroup(of: Step.self) { group in
      group.addTask { await interruption.wait() ? .interrupted : .nothing }
      group.addTask {
        try await following.value
        return await monitor.isOver ? .over : .nothing
      }
      group.addTask {
        try await feed(downloader, monitor)
        await monitor.tookAll()
        if await monitor.isOver { return .over }
        // Batches of changes come with a delay; the end is seen at once.
        try await downloader.waitUntilIdle()
        downloader.deliverChanges()
        if await monitor.isOver { return .over }
        // The batch ends this task. If it does not, another process has finished some of the downloads.
        try await Task.sleep(for: .milliseconds(50))
        try await monitor.reconcile(downloader)
        return await monitor.isOver ? .over : .nothing
      }
      group.addTask { try await tick(downloader) }

      let result = await Result { try await ending(of: &group) }
      if case .success(true) = result { await monitor.beginToEnd() }
      group.cancelAll()
      // Without a ledger nothing can resume them.
      if settings.ledger == nil { await removeUnfinished(downloader) }
      // Stops transfers at a checkpoint, from which they can be resumed, and releases what waits for the downloader.
      await downloader.end()
      await notices.value
      return try result.get()
    }
  }

  private static let unfinished = DownloadFilter(phases: Set(DownloadState.Phase.allCases).subtracting([.finished]))

  /// Removes what is left, for as long as a shutdown may take: a stage may not return.
  private func removeUnfinished(_ downloader: Downloader) async {
    await withTaskGroup { group in
      group.addTask { _ = try? await downloader.removeAll(Self.unfinished) }
      group.addTask { try? await Task.sleep(for: .seconds(10)) }
      await group.next()
      group.cancelAll()
    }
  }

  private func ending(of group: inout ThrowingTaskGroup<Step, any Error>) async throws -> Bool {
    while let step = try await group.next() {
      switch step {
      case .over: return false
      case .interrupted: return true
      case .nothing: continue
      }
    }
    return false
  }

  private func tick(_ downloader: Downloader) async throws -> Step {
    while !Task.isCancelled {
      try await Task.sleep(for: isAnimated ? .milliseconds(100) : .milliseconds(500))
      try await monitor.tick()
      try await monitor.reconcileIfQuiet(downloader)
      if await monitor.isOver { return .over }
    }
    return .nothing
  }
}

extension Result where Failure == any Error {
  init(_ work: () async throws -> Success) async {
    do { self = .success(try await work()) } catch { self = .failure(error) }
  }
}
