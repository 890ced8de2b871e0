/// A builder for the text of a Mermaid flow chart: layers of boxes connected from left to right, and boxes attached to
/// them by dotted lines.
struct MermaidChart: Sendable {
  enum Shape: Sendable {
    case box
    case round
    case rhombus
    case cylinder

    fileprivate var brackets: (String, String) {
      switch self {
      case .box: ("[", "]")
      case .round: ("([", "])")
      case .rhombus: ("{", "}")
      case .cylinder: ("[(", ")]")
      }
    }
  }

  private var nodes: [String] = []
  private var links: [String] = []
  private var layer: [String] = []

  /// Declares a box and returns its id, which must be unique and a plain word.
  mutating func node(_ id: String, _ kind: String, _ label: StageLabel? = nil, shape: Shape = .box) -> String {
    let lines = [kind, label?.name, label?.summary].compactMap(\.self).filter { !$0.isEmpty }
    let (open, close) = shape.brackets
    nodes.append("  \(id)\(open)\"\(lines.map(Self.escaped).joined(separator: "<br/>"))\"\(close)")
    return id
  }

  /// Adds a layer of boxes and connects it to the previous layer.
  mutating func append(_ ids: [String]) {
    for from in layer {
      for to in ids { links.append("  \(from) --> \(to)") }
    }
    layer = ids
  }

  /// Connects a box to others by dotted lines.
  mutating func attach(_ id: String, to others: [String]) {
    for other in others { links.append("  \(id) -.- \(other)") }
  }

  /// The text of the chart.
  var text: String { (["flowchart LR"] + nodes + links).joined(separator: "\n") + "\n" }

  /// Escapes text for a quoted label: ASCII characters with a meaning in Mermaid, Markdown or HTML become Mermaid's
  /// entity codes, such as `#34;` for a quotation mark, which none of these parsers interprets.
  static func escaped(_ text: String) -> String {
    let harmless = " -.,:/()+=".unicodeScalars
    var result = ""
    for scalar in text.unicodeScalars {
      if !scalar.isASCII || scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        || harmless.contains(scalar)
      {
        result.unicodeScalars.append(scalar)
      } else {
        result += "#\(scalar.value);"
      }
    }
    return result
  }
}
