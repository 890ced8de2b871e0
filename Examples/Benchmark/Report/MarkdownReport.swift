/// The results as Markdown: a summary, and a table for each row.
struct MarkdownReport {
  let results: Results
  /// The limits of each row; empty when they were not asked for.
  var verdicts: [[Verdict]] = []

  var text: String {
    var parts = ["# Downpipe beside other programs", results.machine.lines.joined(separator: "; ")]
    if results.isQuick {
      parts.append("**Small sizes: this shows that the benchmark works, and says nothing about speed.**")
    }
    parts.append(summary)
    parts.append(Self.legend(runs: results.runs))
    for (index, row) in results.rows.enumerated() {
      parts.append("## \(row.title)")
      if let text = row.text { parts.append("```\n\(text)\n```") }
      if !row.entries.isEmpty { parts.append(table(row)) }
      if let ideal = row.ideal { parts.append("The least time that the servers permit: \(Shown.seconds(ideal)).") }
      if index < verdicts.count, !verdicts[index].isEmpty {
        parts.append(verdicts[index].map { "- \($0.text)" }.joined(separator: "\n"))
      }
    }
    return parts.joined(separator: "\n\n") + "\n"
  }

  /// One line for each row: Downpipe and the fastest of the others.
  var summary: String {
    var lines = ["| work | Downpipe | fastest other | wall | CPU | peak memory |", "|---|---|---|---|---|---|"]
    for row in results.rows where !row.entries.isEmpty {
      let best = row.peers.min { ($0.value(.wall) ?? .infinity) < ($1.value(.wall) ?? .infinity) }
      func ratio(_ measure: Must.Measure) -> String {
        guard let own = row.downpipe?.value(measure), let other = best?.value(measure), other > 0 else { return "" }
        return Shown.ratio(own / other)
      }
      let own = row.downpipe?.value(.wall).map { Shown.seconds($0) } ?? "failed"
      let other = best.flatMap { peer in peer.value(.wall).map { "\(peer.program) \(Shown.seconds($0))" } } ?? ""
      lines.append("| \(row.title) | \(own) | \(other) | \(ratio(.wall)) | \(ratio(.cpu)) | \(ratio(.memory)) |")
    }
    return lines.joined(separator: "\n")
  }

  private static func legend(runs: Int) -> String {
    """
    Each figure is the median of \(runs) \(runs == 1 ? "run" : "runs"), with the least and the greatest, and its ratio to \
    the best of the other programs. The programs run in turn, after one run that is not measured. CPU is user and system \
    time with all child processes; peak memory is that of the largest process. Bytes fetched are those that the server \
    sent, with heads and with what was on its way when a client closed a connection: the log of nginx in the run that is \
    not measured, or, where a proxy is between, the most that passed it in a run.
    """
  }

  private func table(_ row: RowResult) -> String {
    let hasEach = row.downloads != nil
    var lines = [
      "| program | wall | | CPU | | peak memory | | bytes fetched | |\(hasEach ? " memory for each |" : "")",
      "|---|---|---|---|---|---|---|---|---|\(hasEach ? "---|" : "")",
    ]
    for entry in row.entries {
      if let failure = entry.failure {
        let words = failure.split(whereSeparator: \.isNewline).joined(separator: " ").replacing("|", with: "/")
        lines.append("| \(entry.program) | no result: \(words) |" + String(repeating: " |", count: hasEach ? 8 : 7))
        continue
      }
      var cells = [entry.program]
      for (measure, values) in [
        (Must.Measure.wall, entry.wallSeconds), (.cpu, entry.cpuSeconds), (.memory, entry.peakMemory),
        (.fetched, entry.fetchedBytes.map { [Double($0)] } ?? []),
      ] {
        cells += [Self.figure(values, measure), ratio(entry, measure, row)]
      }
      if hasEach { cells.append(entry.value(.memoryEach, downloads: row.downloads).map { Shown.bytes($0) } ?? "") }
      lines.append("| \(cells.joined(separator: " | ")) |")
    }
    return lines.joined(separator: "\n")
  }

  private static func figure(_ values: [Double], _ measure: Must.Measure) -> String {
    guard let median = values.median, let least = values.min(), let greatest = values.max() else { return "" }
    let text = Shown.value(median, of: measure)
    guard values.count > 1 else { return text }
    return "\(text) (\(Shown.value(least, of: measure)) – \(Shown.value(greatest, of: measure)))"
  }

  private func ratio(_ entry: Entry, _ measure: Must.Measure, _ row: RowResult) -> String {
    guard let value = entry.value(measure) else { return "" }
    guard let best = row.peers.compactMap({ $0.value(measure) }).min(), best > 0 else { return "" }
    return Shown.ratio(value / best)
  }
}
