/// What a step, or the storage that publishes, has noted, and which of them: no other one may read it.
struct StepNote: Sendable, Hashable {
  /// The name of the step; `nil` for notes of ledgers that did not keep it.
  let step: String?
  let text: String

  /// Stands between name and text; no name has it.
  private static let separator: Character = "\u{1F}"

  init(step: String, text: String) {
    self.step = step
    self.text = text
  }

  /// Reads what ``stored`` wrote.
  init(stored: String) {
    let parts = stored.split(separator: Self.separator, maxSplits: 1, omittingEmptySubsequences: false)
    step = parts.count == 2 ? String(parts[0]) : nil
    text = String(parts[parts.count - 1])
  }

  /// The note as the ledger keeps it.
  var stored: String { (step ?? "") + String(Self.separator) + text }

  /// Whether a step may read it.
  func isFor(_ name: String) -> Bool { step == nil || step == name }
}
