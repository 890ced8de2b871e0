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

extension StepSelection {
  /// Checks the selection against the steps of a pipeline.
  /// - Throws: ``DownloadError`` with `.invalidRequest`.
  func check(_ steps: [PipelineStep]) throws(DownloadError) {
    guard let names else { return }
    if let unknown = names.subtracting(steps.map(\.name)).min() {
      let known = Set(steps.map(\.name)).sorted().joined(separator: ", ")
      throw DownloadError(
        .invalidRequest,
        "no step of this pipeline has the name “\(unknown.prefix(100))”; "
          + (known.isEmpty ? "it has no steps" : "its steps are \(known)"))
    }
    var kind = Artifact.Kind.file
    for step in steps where names.contains(step.name) {
      if let input = step.input, input != kind {
        throw DownloadError(
          .invalidRequest,
          "without the steps that are left out, \(step.name) takes a \(input.rawValue) and is given a \(kind.rawValue)")
      }
      kind = step.output ?? kind
    }
  }
}

extension StepSelection {
  /// Whether a step that applies compares digests.
  func verifiesDigests(of steps: [PipelineStep]) -> Bool { steps.contains { $0.verifiesDigests && contains($0.name) } }
}
