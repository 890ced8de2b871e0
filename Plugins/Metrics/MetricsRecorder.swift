import CoreMetrics
import DownpipeCore
import DownpipeTimeline

/// Records the metrics of one downloader.
struct MetricsRecorder {
  private let prefix: String
  private let factory: any MetricsFactory
  private var timeline = Timeline()
  private var hosts: LabelValues?
  private var codes = LabelValues(limit: 64)
  private var steps = LabelValues(limit: 64)
  // Backends find an instrument by name and labels under a lock: it is looked up once.
  private var counters: [Key: Counter] = [:]
  private var timers: [Key: Timer] = [:]

  private struct Key: Hashable {
    let name: StaticName
    let labels: [String]
  }

  private enum StaticName: String {
    case receivedBytes = "received_bytes_total"
    case attempts = "attempts_total"
    case failures = "failures_total"
    case ended = "ended_total"
    case waiting = "waiting_seconds"
    case latency = "latency_seconds"
    case attempt = "attempt_seconds"
    case step = "step_seconds"
    case duration = "duration_seconds"
  }

  init(prefix: String, hostLabels: Int, factory: any MetricsFactory) {
    self.prefix = prefix
    self.factory = factory
    hosts = hostLabels > 0 ? LabelValues(limit: hostLabels) : nil
  }

  /// Reports the number of downloads in each state. States without downloads are reported as 0.
  func report(_ counts: [DownloadState.Phase: Int]) {
    for phase in DownloadState.Phase.allCases {
      Gauge(label: "\(prefix)_downloads", dimensions: [("state", phase.rawValue)], factory: factory)
        .record(counts[phase] ?? 0)
    }
  }

  mutating func receive(_ event: DownloadEvent) {
    if case .attemptFailed(let error) = event.kind { count(error, host(of: event)) }
    for change in timeline.receive(event) {
      switch change.kind {
      case .began, .ended(.paused, _), .ended(.shutDown, _), .ended(.forgotten, _): break
      case .beganPart(.attempt): increment(.attempts, 1, host(of: event))
      case .beganPart: break
      case .replied(let time): record(.latency, time, host(of: event))
      case .fetched(let bytes): increment(.receivedBytes, bytes, host(of: event))
      case .endedPart(.waiting(let reason), let time, _): record(.waiting, time, [("reason", reason.rawValue)])
      case .endedPart(.attempt, let time, _): record(.attempt, time, host(of: event))
      case .endedPart(.step(let name), let time, _): record(.step, time, [("step", steps.value(name))])
      case .ended(.finished, let time):
        end("finished", host(of: event))
        if let time { record(.duration, time, host(of: event)) }
      case .ended(.failed, _): end("failed", host(of: event))
      case .ended(.cancelled, _): end("cancelled", host(of: event))
      case .ended(.removed, _): end("removed", host(of: event))
      }
    }
  }

  private mutating func host(of event: DownloadEvent) -> [(String, String)] {
    guard hosts != nil, let value = hosts?.value(event.request.host) else { return [] }
    return [("host", value)]
  }

  private mutating func count(_ error: DownloadError, _ host: [(String, String)]) {
    // Every series of a metric has the same labels.
    let status = error.httpStatus.flatMap { 100..<600 ~= $0 ? String($0) : nil } ?? ""
    increment(.failures, 1, [("code", codes.value(error.code.rawValue)), ("status", status)] + host)
  }

  private mutating func end(_ result: String, _ host: [(String, String)]) {
    increment(.ended, 1, [("result", result)] + host)
  }

  private mutating func increment(_ name: StaticName, _ amount: Int64, _ labels: [(String, String)]) {
    let key = Key(name: name, labels: labels.map(\.1))
    let counter =
      counters[key] ?? Counter(label: "\(prefix)_\(name.rawValue)", dimensions: labels, factory: factory)
    counters[key] = counter
    counter.increment(by: amount)
  }

  private mutating func record(_ name: StaticName, _ time: Duration, _ labels: [(String, String)]) {
    let key = Key(name: name, labels: labels.map(\.1))
    let timer = timers[key] ?? Timer(label: "\(prefix)_\(name.rawValue)", dimensions: labels, factory: factory)
    timers[key] = timer
    let (seconds, attoseconds) = time.components
    let (nanoseconds, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    timer.recordNanoseconds(overflows ? Int64.max : nanoseconds + attoseconds / 1_000_000_000)
  }
}

/// The values of a label, of which only the first few are kept apart.
struct LabelValues {
  private var known: Set<String> = []
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  /// Returns the value, `other` beyond the limit, or `none` for an empty value.
  mutating func value(_ text: String) -> String {
    guard !text.isEmpty else { return "none" }
    if known.contains(text) { return text }
    guard known.count < limit else { return "other" }
    known.insert(text)
    return text
  }
}
