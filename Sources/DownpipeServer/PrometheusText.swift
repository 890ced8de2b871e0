/// Metrics in the text format of Prometheus (version 0.0.4).
package struct PrometheusText {
  package static let type = "text/plain; version=0.0.4; charset=utf-8"

  package private(set) var text = ""

  package init() {}

  /// - Parameter values: The values by their labels, which are written as `{name="value"}`; empty for none.
  package mutating func add(_ name: String, _ type: String, _ help: String, _ values: [(labels: String, value: Int64)])
  {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    for (labels, value) in values { text += "\(name)\(labels) \(value)\n" }
  }
}
