/// The note that the ledger stores for a finished download while its file is renamed.
struct RenameNote: Sendable, Hashable {
  /// The requested name.
  let name: String
  /// The storage's own note.
  var storageNote: String?

  private static let step = "rename"

  init(name: String, storageNote: String? = nil) {
    self.name = name
    self.storageNote = storageNote
  }

  /// Decodes a note from its ``stored`` form; `nil` for the note of a step.
  init?(stored: String) {
    let outer = StepNote(stored: stored)
    guard outer.step == Self.step else { return nil }
    let inner = StepNote(stored: outer.text)
    guard let name = inner.step else { return nil }
    self.init(name: name, storageNote: inner.text.isEmpty ? nil : inner.text)
  }

  /// The form that the ledger stores.
  var stored: String {
    StepNote(step: Self.step, text: StepNote(step: name, text: storageNote ?? "").stored).stored
  }
}
