extension Pipeline: CustomStringConvertible {
  /// The pipeline as text: a line for each kind of stage in the order in which a download passes them, then the stages
  /// beside the flow.
  ///
  /// ```
  /// request
  /// → scheduling    PriorityQueue
  /// → admission     Limits (3 at once)
  /// → gates         Online
  /// → source        HTTPSource
  /// → storage       FileStore (~/Downloads)
  /// → steps         VerifyChecksum → Gunzip
  /// → artifact      a file
  /// beside the flow
  ///   retry         Retry (up to 5 attempts, waiting at most 1 s, doubling to 60 s)
  ///   ledger        MemoryLedger
  ///   links         none
  ///   interceptors  none
  ///   observers     none
  /// ```
  public var description: String {
    func line(_ mark: String, _ kind: String, _ stages: [StageLabel], joinedBy separator: String = ", ") -> String {
      let text = stages.isEmpty ? "none" : stages.map(\.text).joined(separator: separator)
      return "\(mark) \(kind.padded(to: 12))  \(text)"
    }
    let rates = rates.isEmpty ? [] : [line(" ", "rate", labels(rates), joinedBy: " and ")]
    let segments = segments.map { [line(" ", "segments", [StageLabel($0)])] } ?? []
    let lines =
      [
        "request",
        line("→", "scheduling", [schedulingLabel]),
        line("→", "admission", admissionLabels, joinedBy: " and "),
        line("→", "gates", labels(gates), joinedBy: " and "),
        line("→", "source", labels(sources), joinedBy: ", else "),
        line("→", "storage", [StageLabel(storage)]),
        line("→", "steps", stepLabels, joinedBy: " → "),
        line("→", "artifact", [artifactLabel]),
        "beside the flow",
      ] + rates + segments + [
        line(" ", "retry", [StageLabel(retry)]),
        line(" ", "ledger", [StageLabel(ledger)]),
        line(" ", "links", labels(refresher.map { [$0] } ?? [])),
        line(" ", "interceptors", labels(interceptors), joinedBy: " around "),
        line(" ", "observers", labels(observers)),
      ]
    return lines.joined(separator: "\n")
  }
}

extension Pipeline {
  /// The pipeline as a Mermaid diagram (`flowchart LR`). Equal pipelines have equal text.
  ///
  /// Each stage is a box with its kind, name and settings. Stages beside the flow are connected by dotted lines. Names
  /// and settings are escaped.
  public var mermaid: String {
    var chart = MermaidChart()
    chart.append([chart.node("request", "request", shape: .round)])
    chart.append([chart.node("scheduling", "scheduling", schedulingLabel)])
    for (number, label) in admissionLabels.enumerated() {
      chart.append([chart.node("admission\(number + 1)", "admission", label)])
    }
    for (number, label) in labels(gates).enumerated() {
      chart.append([chart.node("gate\(number + 1)", "gate", label, shape: .rhombus)])
    }
    let openers = labels(sources).enumerated().map { number, label in
      chart.node("source\(number + 1)", "source", label)
    }
    chart.append(openers)
    chart.append([chart.node("storage", "storage", StageLabel(storage), shape: .cylinder)])
    for (number, label) in stepLabels.enumerated() {
      chart.append([chart.node("step\(number + 1)", "step", label)])
    }
    chart.append([chart.node("artifact", "artifact", artifactLabel, shape: .round)])

    for (number, label) in labels(interceptors).enumerated() {
      chart.attach(chart.node("interceptor\(number + 1)", "interceptor", label), to: openers)
    }
    if let refresher {
      chart.attach(chart.node("links", "links", StageLabel(refresher)), to: openers)
    }
    if let segments {
      chart.attach(chart.node("segments", "segments", StageLabel(segments)), to: openers)
    }
    chart.attach(chart.node("retry", "retry", StageLabel(retry)), to: openers)
    chart.attach(chart.node("ledger", "ledger", StageLabel(ledger), shape: .cylinder), to: ["scheduling", "storage"])
    for (number, label) in labels(observers).enumerated() {
      chart.attach(chart.node("observer\(number + 1)", "observer", label), to: ["artifact"])
    }
    return chart.text
  }

  private var schedulingLabel: StageLabel {
    scheduling.map { StageLabel($0) } ?? StageLabel(name: "in order of arrival", summary: "")
  }

  private var admissionLabels: [StageLabel] {
    guard admission.isEmpty else { return labels(admission) }
    return DefaultLimit().maximumConcurrent.map { [StageLabel(name: "\($0) at once", summary: "")] } ?? []
  }

  private var stepLabels: [StageLabel] { steps.map { StageLabel(name: $0.name, summary: $0.summary) } }

  private var artifactLabel: StageLabel {
    let kind = steps.last { $0.output != nil }?.output ?? .file
    return StageLabel(name: kind == .file ? "a file" : "a directory", summary: "")
  }

  private func labels(_ stages: [any Stage]) -> [StageLabel] { stages.map { StageLabel($0) } }
}

/// The name and settings of a stage, each on one line.
struct StageLabel: Sendable, Hashable {
  let name: String
  let summary: String

  init(name: String, summary: String) {
    self.name = name.onOneLine
    self.summary = summary.onOneLine
  }

  init(_ stage: any Stage) { self.init(name: stage.name, summary: stage.summary) }

  /// The label as text, such as `FileStore (~/Downloads)`.
  var text: String { summary.isEmpty ? name : "\(name) (\(summary))" }
}

extension String {
  /// The text without line breaks and control characters. A run of white space becomes one blank.
  fileprivate var onOneLine: String {
    split { character in
      character.isWhitespace || character.unicodeScalars.allSatisfy { $0.properties.generalCategory == .control }
    }.joined(separator: " ")
  }
}
