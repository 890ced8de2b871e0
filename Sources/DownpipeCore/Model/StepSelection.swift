/// Which steps of a pipeline apply to a download, by their names.
///
/// ```swift
/// DownloadRequest(url, steps: .only("Gunzip"))
/// ```
/// The ledger keeps it. A name that no step of the pipeline has is refused when the download is added, and so is a
/// selection without a step that changes the form, such as an unpacker of archives, where what follows needs its output.
public struct StepSelection: Sendable, Hashable {
  /// The names; `nil` for every step.
  public let names: Set<String>?

  private init(names: Set<String>?) { self.names = names }

  /// Every step.
  public static let all = StepSelection(names: nil)
  /// No step: the bytes are published as they came.
  public static let none = StepSelection(names: [])

  /// The steps of the names, in the order of the pipeline.
  public static func only(_ names: String...) -> StepSelection { StepSelection(names: Set(names)) }
  /// The steps of the names, in the order of the pipeline.
  public static func only(_ names: Set<String>) -> StepSelection { StepSelection(names: names) }

  /// Whether a step applies.
  public func contains(_ name: String) -> Bool { names?.contains(name) ?? true }
}

extension StepSelection: Codable {
  /// Reads a list of names, or null for every step.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    self.init(names: container.decodeNil() ? nil : try container.decode(Set<String>.self))
  }

  /// Writes the names in order, or null.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let names { try container.encode(names.sorted()) } else { try container.encodeNil() }
  }
}
