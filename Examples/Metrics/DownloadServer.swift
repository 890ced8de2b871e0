import Downpipe
import DownpipeMetrics
import MetricsTestKit

/// A downloader, and an endpoint that shows its metrics to Prometheus.
struct DownloadServer: Sendable {
  let downloader: Downloader
  private let backend: TestMetrics
  private let endpoint: MetricsEndpoint

  /// Starts both. Port 0 means any free port; see ``port``.
  init(folder: String, port: Int) async throws {
    // Keeps every value, which a server must not do: see the README for a backend.
    let backend = TestMetrics()
    self.backend = backend
    downloader = try await Downloader {
      HTTPSource()
      Limits(concurrent: 4, perHost: 2)
      Retry(.exponential(attempts: 5))
      FileStore(folder)
      MetricsObserver(hostLabels: 20, countInterval: .seconds(1), factory: backend)
    }
    endpoint = try await MetricsEndpoint(port: port) { PrometheusText(backend).description }
  }

  var port: Int { endpoint.port }
  var metrics: String { PrometheusText(backend).description }

  func shutdown() async {
    await downloader.shutdown()
    await endpoint.shutdown()
  }
}
