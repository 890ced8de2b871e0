import DownpipeCore
import DownpipePOSIX
import Foundation

/// A path with fields, such as `~/Films/{host}/{year}/{name}`.
struct PathTemplate: Sendable, Hashable {
  enum Field: Sendable, Hashable {
    case host, year, month, day, name, stem, `extension`, id
    case metadata(String)

    /// Whether artifacts get different values, as names need them.
    var tellsArtifactsApart: Bool {
      switch self {
      case .name, .stem, .id, .metadata: true
      case .host, .year, .month, .day, .extension: false
      }
    }
  }

  enum Part: Sendable, Hashable {
    case text(String)
    case field(Field)
  }

  /// The template as the user wrote it.
  let text: String
  /// The absolute path of the folder before the first component with a field.
  let root: String
  /// The components of the folder below the root.
  let folders: [[Part]]
  /// The name in the folder.
  let name: [Part]

  init(_ text: String) throws(DownloadError) {
    var components = try Self.components(of: text)
    guard var name = components.popLast(), !text.isEmpty else { throw Self.refusal(text, "is empty") }
    if name.isEmpty { name = [.field(.name)] }
    guard name.contains(where: { if case .field(let field) = $0 { field.tellsArtifactsApart } else { false } }) else {
      throw Self.refusal(
        text, "gives all artifacts one name: end it with /{name}, or with a name of {stem}, {id} or {metadata:KEY}")
    }
    let fixed = components.prefix { $0.allSatisfy { if case .text = $0 { true } else { false } } }
    let root = fixed.map { $0.map(\.literal).joined() }.joined(separator: "/")
    var folders: [[Part]] = []
    for folder in components.dropFirst(fixed.count) {
      if folder.contains(where: { if case .field = $0 { true } else { false } }) {
        folders.append(folder)
        continue
      }
      let literal = folder.map(\.literal).joined()
      if literal.isEmpty || literal == "." { continue }
      do { try PathText.checkName(literal) } catch {
        throw Self.refusal(text, "has the folder “\(literal.prefix(60))” after a field: write the path without it")
      }
      folders.append(folder)
    }
    guard !text.utf8.contains(0) else { throw Self.refusal(text, "has a NUL") }
    self.text = text
    self.root = PathText.absolute(root.isEmpty && text.hasPrefix("/") ? "/" : root)
    self.folders = folders
    self.name = name
  }

  // MARK: Reading

  /// The parts between the slashes. A slash in the key of a field belongs to the key.
  private static func components(of text: String) throws(DownloadError) -> [[Part]] {
    var components: [[Part]] = []
    var component: [Part] = []
    var literal = String.UnicodeScalarView()
    var rest = text.unicodeScalars[...]
    func endText() {
      if !literal.isEmpty { component.append(.text(String(literal))) }
      literal = String.UnicodeScalarView()
    }
    while let scalar = rest.popFirst() {
      switch scalar {
      case "{", "}":
        if rest.first == scalar {
          rest.removeFirst()
          literal.append(scalar)
          continue
        }
        guard scalar == "{", let end = rest.firstIndex(of: "}") else {
          throw refusal(text, "has a brace without its counterpart: write {{ or }} for the brace itself")
        }
        endText()
        component.append(.field(try field(String(rest[..<end]), in: text)))
        rest = rest[rest.index(after: end)...]
      case "/":
        endText()
        components.append(component)
        component = []
      default:
        literal.append(scalar)
      }
    }
    endText()
    return components + [component]
  }

  private static func field(_ name: String, in text: String) throws(DownloadError) -> Field {
    switch name {
    case "host": return .host
    case "year": return .year
    case "month": return .month
    case "day": return .day
    case "name": return .name
    case "stem": return .stem
    case "extension": return .extension
    case "id": return .id
    default:
      let prefix = "metadata:"
      if name.hasPrefix(prefix), name.utf8.count > prefix.utf8.count {
        return .metadata(String(name.dropFirst(prefix.count)))
      }
      throw refusal(
        text,
        "has the unknown field {\(name.prefix(60))}: use {name}, {stem}, {extension}, {host}, {year}, {month}, {day}, "
          + "{id} or {metadata:KEY}")
    }
  }

  private static func refusal(_ text: String, _ reason: String) -> DownloadError {
    DownloadError(.invalidPipeline, "the template “\(text.prefix(200))” \(reason)", stage: "MoveInto")
  }

  // MARK: Filling in

  /// The folder below the root, and the name, of an artifact.
  func target(
    of artifact: Artifact, in context: ProcessingContext, now: Date
  ) -> (directory: String?, name: String) {
    let values = Values(artifact: artifact, request: context.request, date: context.lastModified ?? now)
    let directory = folders.map { Self.fill($0, with: values) }.joined(separator: "/")
    return (directory.isEmpty ? nil : directory, Self.fill(name, with: values))
  }

  private static func fill(_ component: [Part], with values: Values) -> String {
    let text = component.map { part in
      switch part {
      case .text(let text): text
      case .field(let field): values.safe(field)
      }
    }.joined()
    // Of several values, each of which is short enough.
    return text.utf8.count <= SafeFileName.maximumLength ? text : SafeFileName.make(fromTitle: text, fallback: "_")
  }

  /// The values of the fields for one artifact.
  private struct Values {
    let artifact: Artifact
    let request: DownloadRequest
    let date: Date

    private var name: String { request.destination.finalName ?? artifact.name }
    private var ending: String { artifact.kind == .directory ? "" : NumberedName.ending(of: name) }

    /// The value as text that is safe as a single name.
    func safe(_ field: Field) -> String { SafeFileName.make(fromTitle: value(field), fallback: "_") }

    private func value(_ field: Field) -> String {
      switch field {
      case .host: request.host
      case .year: Self.digits(HTTPDate.day(of: date).year, 4)
      case .month: Self.digits(HTTPDate.day(of: date).month, 2)
      case .day: Self.digits(HTTPDate.day(of: date).day, 2)
      case .name: name
      case .stem: String(name.unicodeScalars.dropLast(ending.unicodeScalars.count))
      case .extension: String(ending.dropFirst())
      case .id: request.id.rawValue
      case .metadata(let key): request.metadata[key] ?? ""
      }
    }

    private static func digits(_ number: Int64, _ count: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
  }
}

extension PathTemplate.Part {
  /// The text, which is empty for a field.
  fileprivate var literal: String {
    if case .text(let text) = self { text } else { "" }
  }
}
