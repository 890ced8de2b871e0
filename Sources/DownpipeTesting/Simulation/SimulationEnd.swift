@_spi(Ledger) import DownpipeCore
import Foundation

/// The end of a simulation: everything may run again, and has to finish; then everything is removed, and nothing must be
/// left.
struct SimulationEnd: Sendable {
  let system: SimulatedSystem
  let world: World

  private var checks: InvariantChecks { system.checks }

  func perform(rested: () async -> Void) async {
    let processes = system.processes.filter { $0.downloader != nil }
    for process in processes { await release(process) }
    for process in processes { await idle(process) }
    // What has failed by a fault that began before the end of the faults.
    for process in processes { await resumeAll(process) }
    for process in processes { await idle(process) }
    // What the servers have now contradicts what they had: a user who wants it restarts the download.
    for process in processes { await restartRefused(process) }
    for process in processes { await idle(process) }
    guard !Task.isCancelled else { return }
    // Watchers learn the last states after a moment.
    try? await world.clock.sleep(
      until: world.clock.now + .seconds(5), purpose: SimulatedUser.sleep,
      owner: processes.first?.executor ?? .init(world.scheduler))
    await rested()
    checkEnds(processes)
    checks.check(at: .atEnd)
    for process in processes { process.watchers.cancel() }
    if let first = processes.first { await removeAll(first) }
    await rested()
    for process in processes { await checkBookkeeping(process) }
    for process in processes {
      await process.downloader?.shutdown(waitingAtMost: nil)
      process.checkShutdown(isAlone: true)
    }
  }

  /// Lets everything of a process run that can run.
  private func release(_ process: SimulatedProcess) async {
    guard let downloader = process.downloader else { return }
    process.gate.set(isOpen: true)
    if process.usesLimits {
      await checks.replaceLimits(of: process, downloader, by: .usual) {
        await downloader.replace(SimulatedLimits.usual)
      }
    }
    await downloader.setSuspended(false)
    checks.gate(of: process, isOpen: true)
    checks.goesOn(process)
    await resumeAll(process)
  }

  private func resumeAll(_ process: SimulatedProcess) async {
    do { _ = try await process.downloader?.resumeAll() } catch {
      checks.report(.response, "resumeAll threw \(error)")
    }
  }

  private func restartRefused(_ process: SimulatedProcess) async {
    for record in checks.records
    where record.phase == .failed && record.error.map({ Self.refusals.contains($0.code) }) == true {
      do { _ = try await process.downloader?.restart(record.id) } catch {
        checks.report(.response, "restart threw \(error)")
      }
    }
  }

  private static let refusals: Set<DownloadError.Code> = [.contentChanged, .sizeChanged, .wrongContentCoding]

  private func idle(_ process: SimulatedProcess) async {
    guard let downloader = process.downloader else { return }
    let begin = world.scheduler.steps
    do {
      try await downloader.waitUntilIdle()
      checks.checkIdle(since: begin)
    } catch  where !Task.isCancelled {
      // Failures of the ledger may have been counted before the faults ended.
      do { try await downloader.waitUntilIdle() } catch  where !Task.isCancelled {
        checks.report(.response, "waitUntilIdle threw \(error)")
      } catch {}
    } catch {}
  }

  // MARK: Checks

  /// Whether a failure stays when all faults have ended: the first server that is asked has another version than the one
  /// expected.
  private func isLasting(_ error: DownloadError, of request: DownloadRequest) -> Bool {
    let present = ([request.url] + request.mirrors).compactMap(system.network.content)
    return switch error.code {
    case .digestMismatch: !present.allSatisfy { request.expectedDigests.contains($0.digest) }
    case .lengthMismatch, .sizeChanged, .contentChanged:
      request.expectedSize != .unknown && !present.allSatisfy { request.expectedSize == .known($0.size) }
    default: false
    }
  }

  private func checkEnds(_ processes: [SimulatedProcess]) {
    for record in checks.records {
      let isHeld = !record.waitsFor.isEmpty
      switch record.phase {
      case .finished: checks.checkFinished(record)
      case .cancelled: break
      case .failed where record.error.map({ isLasting($0, of: record.request) }) == true: break
      case .waiting where isHeld: break
      default:
        checks.report(
          .liveness, "\(record.id) is \(record.phase) at the end: \(record.error.map { "\($0)" } ?? "no error")")
      }
    }
    for process in processes {
      for watcher in process.watchers.lastStates {
        let phase = checks.record(watcher.id)?.phase
        guard watcher.state?.phase != phase else { continue }
        let heard = watcher.state.map { "“\($0)”" } ?? "none"
        checks.report(
          .lastState,
          "the last state of \(watcher.id) that a watcher heard of is \(heard), but it is "
            + (phase.map(\.rawValue) ?? "gone"))
      }
    }
  }

  private func removeAll(_ process: SimulatedProcess) async {
    guard let downloader = process.downloader else { return }
    do {
      _ = try await downloader.removeAll(deletingFiles: true)
      if process.usesDisk {
        _ = try await downloader.removeOrphans(try await downloader.orphans())
        let contents = system.disk.contents
        if let key = contents.partials.keys.min(by: { $0.id.rawValue < $1.id.rawValue }) {
          checks.report(.bookkeeping, "the partial of \(key.id) is left after all downloads were removed")
        }
      }
    } catch {
      checks.report(.response, "removeAll threw \(error)")
    }
  }

  private func checkBookkeeping(_ process: SimulatedProcess) async {
    guard let sizes = await process.downloader?.bookkeeping else { return }
    // What another process has finished or removed is remembered here, in a bounded number of entries, until the network
    // comes back or a watcher comes: it may be for ever, so that to wait longer does not help.
    let isShared = world.configuration.processes > 1
    for (name, size) in sizes.sorted(by: { $0.key < $1.key }) where size > 0 {
      if isShared, name == "waits" || name == "reasons" { continue }
      checks.report(.bookkeeping, "“\(name)” has \(size) entries after all downloads were removed")
    }
  }
}
