import DownpipeCore

extension GateRule {
  /// A rule with the same verdict for all downloads.
  init(_ verdict: Verdict) {
    switch verdict {
    case .open: self = .open
    case .closed(let reason): self = .closed(reason)
    }
  }
}
