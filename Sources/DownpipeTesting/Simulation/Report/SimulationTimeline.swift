import DownpipeCore

/// The history of a simulated world; see ``Simulation/timeline(of:)`` and ``SimulationFailure/timeline``.
public struct SimulationTimeline: Sendable, CustomStringConvertible {
  /// The events, in order.
  public let entries: [TimelineEntry]

  /// One event in a line.
  public var description: String { entries.map(\.description).joined(separator: "\n") }

  /// The events as a sequence diagram in the language of Mermaid: users, processes, servers, disk and ledger.
  public var mermaid: String {
    var lines = ["sequenceDiagram", "  participant User"]
    let numbers = Set(entries.compactMap(\.process)).sorted()
    lines += numbers.map { "  participant P\($0) as Process \($0)" }
    lines += ["  participant Server", "  participant Disk", "  participant Ledger", "  participant World"]
    lines += entries.map { entry in
      let process = entry.process.map { "P\($0)" } ?? "World"
      let text = entry.mermaidText
      return switch entry.kind {
      case .command: "  User->>\(process): \(text)"
      case .request: "  \(process)->>Server: \(text)"
      case .reply: "  Server-->>\(process): \(text)"
      case .disk: "  \(process)->>Disk: \(text)"
      case .ledger: "  \(process)->>Ledger: \(text)"
      case .state: "  \(process)-->>User: \(text)"
      case .engine, .process, .world: "  Note over \(process): \(text)"
      }
    }
    return lines.joined(separator: "\n")
  }
}

extension TimelineEntry: CustomStringConvertible {
  /// The time, the process and the download, and what happened.
  public var description: String {
    let (seconds, attoseconds) = time.components
    let fraction = String(attoseconds / 1_000_000_000_000_000 + 1_000).dropFirst()
    let clock = "\(seconds).\(fraction)"
    let padding = String(repeating: " ", count: max(0, 10 - clock.count))
    return padding + clock + " s  " + (process.map { "P\($0)" } ?? "  ") + "  "
      + kind.rawValue.padding(to: 8) + (id.map { "\($0.rawValue)  " } ?? "") + text
  }

  /// The text without characters that the language of Mermaid reserves.
  fileprivate var mermaidText: String {
    let own = (id.map { "\($0.rawValue) " } ?? "") + text
    return String(own.map { ";#:\n".contains($0) ? " " : $0 }.prefix(120))
  }
}

extension String {
  fileprivate func padding(to count: Int) -> String { self + String(repeating: " ", count: max(0, count - self.count)) }
}
