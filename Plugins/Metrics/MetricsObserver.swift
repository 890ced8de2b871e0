public import CoreMetrics
public import DownpipeCore

/// Reports metrics of all downloads to the backend of swift-metrics, which the process sets with
/// `MetricsSystem.bootstrap(_:)`.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   MetricsObserver()
/// }
/// ```
/// The metrics, whose names begin with the prefix:
///
/// | name | kind | labels | |
/// |---|---|---|---|
/// | `downloads` | gauge | `state` | the downloads in each state, as the ledger counts them |
/// | `received_bytes_total` | counter | | bytes received over the network, also those fetched again |
/// | `attempts_total` | counter | | attempts begun |
/// | `failures_total` | counter | `code`, `status` | failed attempts, by error code and HTTP status |
/// | `ended_total` | counter | `result` | downloads that are `finished`, `failed`, `cancelled` or `removed` |
/// | `waiting_seconds` | timer | `reason` | each wait, for a turn, a limit, a gate, the machine, a retry …, as it began |
/// | `latency_seconds` | timer | | from the beginning of an attempt until its reply was accepted |
/// | `attempt_seconds` | timer | | each attempt, until the bytes are complete or it ends otherwise |
/// | `step_seconds` | timer | `step` | each step |
/// | `duration_seconds` | timer | | finished downloads, with their waits in this process |
///
/// Backends show a timer as a histogram. The number of label values is bounded: codes and steps beyond the first 64 are
/// `other`, and so are hosts beyond `hostLabels`. Waits and durations are measured for up to 10,000 waiting downloads
/// at a time. If the observer falls so far behind that it misses events, they are not counted.
public struct MetricsObserver: Observer {
  private let prefix: String
  private let hostLabels: Int
  private let countInterval: Duration
  private let factory: (any MetricsFactory)?

  /// Creates an observer.
  /// - Parameters:
  ///   - prefix: The beginning of the metrics' names, before an underscore.
  ///   - hostLabels: The number of hosts that get a label of their own. The label `host` is left out if it is 0; it does
  ///     not apply to `downloads`, `waiting_seconds` and `step_seconds`.
  ///   - countInterval: The time between two readings of the ledger for `downloads`.
  ///   - factory: The backend; the process's factory if `nil`.
  public init(
    prefix: String = "downpipe", hostLabels: Int = 0, countInterval: Duration = .seconds(10),
    factory: (any MetricsFactory)? = nil
  ) {
    self.prefix = prefix
    self.hostLabels = max(0, hostLabels)
    self.countInterval = max(.milliseconds(100), countInterval)
    self.factory = factory
  }

  /// Reports metrics until the sequence ends, except `downloads`, which needs the context.
  public func observe(_ events: AsyncStream<DownloadEvent>) async {
    var recorder = recorder
    for await event in events { recorder.receive(event) }
  }

  /// Reports metrics until the sequence ends.
  public func observe(_ events: AsyncStream<DownloadEvent>, in context: ObserverContext) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await reportCounts(in: context) }
      await observe(events)
      group.cancelAll()
    }
    // The last reading, for jobs that end with their downloads.
    if let counts = try? await context.counts() { recorder.report(counts) }
  }

  private func reportCounts(in context: ObserverContext) async {
    let recorder = recorder
    repeat {
      if let counts = try? await context.counts() { recorder.report(counts) }
    } while (try? await context.time.sleep(for: countInterval, purpose: SleepPurpose("metrics"))) != nil
  }

  private var recorder: MetricsRecorder {
    MetricsRecorder(
      prefix: prefix, hostLabels: hostLabels, factory: factory ?? MetricsSystem.factory)
  }
}
