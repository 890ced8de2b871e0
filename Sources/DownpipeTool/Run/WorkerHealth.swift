import Downpipe
import DownpipeServer
import Foundation
import Synchronization

/// What a worker says of itself, in the text format of Prometheus (version 0.0.4), and whether it can reach its ledger.
struct WorkerHealth: Sendable {
  /// The queue as it was read last, and when.
  private final class Look: Sendable {
    let state = Mutex<(counts: [DownloadState.Phase: Int], at: ContinuousClock.Instant)?>(nil)
  }

  private static let interval: Duration = .seconds(5)
  private static let limit: Duration = .seconds(30)
  private let downloader: Downloader
  private let log: WorkLog
  private let look = Look()

  init(_ downloader: Downloader, _ log: WorkLog) {
    self.downloader = downloader
    self.log = log
  }

  /// Reads the queue at intervals, until the task is cancelled.
  func watch() async {
    repeat {
      if let counts = try? await downloader.counts() { look.state.withLock { $0 = (counts, .now) } }
    } while (try? await Task.sleep(for: Self.interval)) != nil
  }

  /// The reply to a path; `nil` for one that does not exist.
  func answer(_ path: String) -> (isGood: Bool, text: String)? {
    switch path {
    case "/healthz":
      if seen == nil { return (false, "the ledger has not answered for 30 seconds\n") }
      if let fault = downloader.machineFault { return (false, fault.reasonOfMachine + "\n") }
      return (true, "ok\n")
    case "/metrics": return (true, metrics)
    default: return nil
    }
  }

  private var seen: [DownloadState.Phase: Int]? {
    look.state.withLock { look in look.flatMap { $0.at.duration(to: .now) < Self.limit ? $0.counts : nil } }
  }

  private var metrics: String {
    let counts = log.counts
    var text = PrometheusText()
    text.add(
      "downpipe_worker_finished_total", "counter", "Downloads that this worker has finished.",
      [("", Int64(counts.tally.finished))])
    text.add(
      "downpipe_worker_failed_total", "counter", "Downloads that have failed here.", [("", Int64(counts.tally.failed))])
    text.add("downpipe_worker_bytes_total", "counter", "Bytes of finished files.", [("", counts.tally.finishedBytes)])
    text.add("downpipe_worker_running", "gauge", "Downloads that run here.", [("", Int64(counts.running))])
    let queue = seen
    text.add(
      "downpipe_ledger_up", "gauge", "Whether the ledger has answered in the last 30 seconds.",
      [("", queue == nil ? 0 : 1)])
    if let queue {
      text.add(
        "downpipe_queue_downloads", "gauge", "Downloads of the ledger by phase, for all workers.",
        DownloadState.Phase.allCases.map { ("{phase=\"\($0.rawValue)\"}", Int64(queue[$0] ?? 0)) })
    }
    return text.text
  }
}
