import DownpipeCore
import DownpipeServer
import Synchronization

/// What the server counts, and its queue, for Prometheus.
final class RPCMetrics: Sendable {
  private struct Counts {
    var calls: Int64 = 0
    var failures: Int64 = 0
    var wrongTokens: Int64 = 0
  }

  private let counts = Mutex(Counts())
  private let downloader: Downloader

  init(_ downloader: Downloader) { self.downloader = downloader }

  func count(_ result: Result<JSONValue, RPCFailure>) {
    counts.withLock { counts in
      counts.calls += 1
      if case .failure = result { counts.failures += 1 }
    }
  }

  func countWrongToken() { counts.withLock { $0.wrongTokens += 1 } }

  func text(sockets: Int) async -> String {
    let counts = counts.withLock { $0 }
    var text = PrometheusText()
    text.add("downpipe_rpc_calls_total", "counter", "Calls of clients.", [("", counts.calls)])
    text.add("downpipe_rpc_failures_total", "counter", "Calls that have failed.", [("", counts.failures)])
    text.add("downpipe_rpc_wrong_tokens_total", "counter", "Wrong tokens.", [("", counts.wrongTokens)])
    text.add("downpipe_rpc_sockets", "gauge", "Sockets that get notifications.", [("", Int64(sockets))])
    let totals = try? await downloader.totals()
    text.add("downpipe_ledger_up", "gauge", "Whether the ledger answers.", [("", totals == nil ? 0 : 1)])
    if let totals {
      text.add(
        "downpipe_queue_downloads", "gauge", "Downloads by phase.",
        DownloadState.Phase.allCases.map { ("{phase=\"\($0.rawValue)\"}", Int64(totals.counts[$0] ?? 0)) })
      text.add("downpipe_queue_received_bytes", "gauge", "Bytes of all downloads on disk.", [("", totals.received)])
      text.add(
        "downpipe_queue_bytes_per_second", "gauge", "The speed of all transfers.",
        [("", totals.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) } ?? 0)])
    }
    return text.text
  }
}
