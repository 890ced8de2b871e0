/// What the ledger keeps of a finished download while its file is given another name.
struct RenameNote: Sendable, Hashable {
  /// The name that is asked for.
  let name: String
  /// What the storage has noted.
  var storageNote: String?

  private static let step = "rename"

  init(name: String, storageNote: String? = nil) {
    self.name = name
    self.storageNote = storageNote
  }

  /// Reads what ``stored`` wrote; `nil` for a note of something else.
  init?(stored: String) {
    let outer = StepNote(stored: stored)
    guard outer.step == Self.step else { return nil }
    let inner = StepNote(stored: outer.text)
    guard let name = inner.step else { return nil }
    self.init(name: name, storageNote: inner.text.isEmpty ? nil : inner.text)
  }

  /// The note as the ledger keeps it.
  var stored: String {
    StepNote(step: Self.step, text: StepNote(step: name, text: storageNote ?? "").stored).stored
  }
}
