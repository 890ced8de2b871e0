import Downpipe

/// What the gates of a command say at one moment.
struct GateRules: Sendable {
  private var rules: [GateRule] = []

  /// No gates.
  init() {}

  /// Asks each gate once.
  init(_ gates: [any Gate]) async {
    for gate in gates {
      if let rule = await Self.rule(of: gate) { rules.append(rule) }
    }
  }

  /// Why a waiting download has to wait; `nil` when all gates are open, or it waits for something else.
  func reason(for download: DownloadStatus) -> String? {
    guard download.state == .waiting(.suspended) else { return nil }
    for rule in rules {
      if case .closed(let reason) = rule.verdict(for: download.request.candidate) { return reason }
    }
    return nil
  }

  /// The first rule of a gate; `nil` when it fails, since its state is not known then.
  private static func rule(of gate: any Gate) async -> GateRule? {
    let (rules, continuation) = AsyncStream.makeStream(of: GateRule.self)
    let watch = Task {
      try? await gate.watch { continuation.yield($0) }
      continuation.finish()
    }
    defer { watch.cancel() }
    for await rule in rules { return rule }
    return nil
  }
}
