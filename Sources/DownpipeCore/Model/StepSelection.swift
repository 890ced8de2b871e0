/// The steps of a pipeline that apply to a download, by name.
///
/// ```swift
/// DownloadRequest(url).with(\.steps, .only("Gunzip"))
/// ```
/// The ledger keeps the selection. Adding a download fails if the selection names a step that the pipeline does not
/// have, or if it leaves out a step that changes the form, such as an archive unpacker, and a later step needs its
/// output.
public struct StepSelection: Sendable, Hashable {
  /// The names of the selected steps; `nil` for all steps.
  public let names: Set<String>?

  private init(names: Set<String>?) { self.names = names }

  /// Selects all steps.
  public static let all = StepSelection(names: nil)
  /// Selects no step: the file is published as it was downloaded. A content coding is removed all the same, because it
  /// belongs to the transfer; see ``Source/decoder(for:)``.
  public static let none = StepSelection(names: [])

  /// Selects the steps with these names, which run in the order of the pipeline.
  public static func only(_ names: String...) -> StepSelection { StepSelection(names: Set(names)) }
  /// Selects the steps with these names, which run in the order of the pipeline.
  public static func only(_ names: Set<String>) -> StepSelection { StepSelection(names: names) }

  /// Whether the step with this name applies.
  public func contains(_ name: String) -> Bool { names?.contains(name) ?? true }
}

extension StepSelection: Codable {
  /// Decodes a list of names, or null for all steps.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    self.init(names: container.decodeNil() ? nil : try container.decode(Set<String>.self))
  }

  /// Encodes the sorted names, or null for all steps.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let names { try container.encode(names.sorted()) } else { try container.encodeNil() }
  }
}
