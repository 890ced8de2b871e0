/// A note that a step, or the storage while publishing, keeps in the ledger. Only the stage that wrote it may read it.
struct StepNote: Sendable, Hashable {
  /// The name of the step; `nil` for notes of older ledgers, which did not store it.
  let step: String?
  let text: String

  /// Separates name and text; it does not occur in names.
  private static let separator: Character = "\u{1F}"

  init(step: String, text: String) {
    self.step = step
    self.text = text
  }

  /// Decodes a note from its ``stored`` form.
  init(stored: String) {
    let parts = stored.split(separator: Self.separator, maxSplits: 1, omittingEmptySubsequences: false)
    step = parts.count == 2 ? String(parts[0]) : nil
    text = String(parts[parts.count - 1])
  }

  /// The form that the ledger stores.
  var stored: String { (step ?? "") + String(Self.separator) + text }

  /// Whether the step with the given name may read the note.
  func isFor(_ name: String) -> Bool { step == nil || step == name }

  /// Whether it is the note of one of these steps. A note of an older ledger is of the step that runs.
  func isFor(later names: some Sequence<String>) -> Bool { step.map { names.contains($0) } ?? false }
}

extension StepLog {
  /// The text that a step has kept.
  func note(of step: String) -> String? {
    note.map(StepNote.init(stored:)).flatMap { $0.isFor(step) ? $0.text : nil }
  }
}
