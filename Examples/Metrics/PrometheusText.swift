import MetricsTestKit

/// A name and labels, which all instruments of the backend have.
protocol Labelled {
  var label: String { get }
  var dimensions: [(String, String)] { get }
}

extension TestCounter: Labelled {}
extension TestRecorder: Labelled {}
extension TestTimer: Labelled {}

/// The values of a backend in the text format of Prometheus, version 0.0.4.
struct PrometheusText: CustomStringConvertible {
  private static let buckets = [0.005, 0.025, 0.1, 0.5, 1, 5, 30, 60, 300, 1800]
  private var lines: [String] = []

  var description: String { lines.joined(separator: "\n") + "\n" }

  init(_ backend: TestMetrics) {
    for (name, series) in families(of: backend.counters) {
      lines.append("# TYPE \(name) counter")
      for counter in series { add(name, counter.dimensions, "\(counter.totalValue)") }
    }
    for (name, series) in families(of: backend.recorders) {
      lines.append("# TYPE \(name) gauge")
      for gauge in series { add(name, gauge.dimensions, "\(gauge.lastValue ?? 0)") }
    }
    for (name, series) in families(of: backend.timers) {
      lines.append("# TYPE \(name) histogram")
      for timer in series { add(name, timer) }
    }
  }

  /// The instruments by name, each name once.
  private func families<Series: Labelled>(of series: [Series]) -> [(name: String, series: [Series])] {
    Dictionary(grouping: series, by: \.label).sorted { $0.key < $1.key }.map { name, series in
      (name, series.sorted { labels($0.dimensions) < labels($1.dimensions) })
    }
  }

  private mutating func add(_ name: String, _ timer: TestTimer) {
    let seconds = timer.values.map { Double($0) / 1e9 }
    for bound in Self.buckets {
      add("\(name)_bucket", timer.dimensions + [("le", "\(bound)")], "\(seconds.count { $0 <= bound })")
    }
    add("\(name)_bucket", timer.dimensions + [("le", "+Inf")], "\(seconds.count)")
    add("\(name)_sum", timer.dimensions, "\(seconds.reduce(0, +))")
    add("\(name)_count", timer.dimensions, "\(seconds.count)")
  }

  private mutating func add(_ name: String, _ dimensions: [(String, String)], _ value: String) {
    lines.append("\(name)\(labels(dimensions)) \(value)")
  }

  private func labels(_ dimensions: [(String, String)]) -> String {
    if dimensions.isEmpty { return "" }
    let list = dimensions.map { name, value -> String in
      let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
      return "\(name)=\"\(escaped)\""
    }
    return "{\(list.joined(separator: ","))}"
  }
}
