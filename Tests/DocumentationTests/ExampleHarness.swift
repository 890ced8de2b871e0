import Foundation

/// Makes a source file of examples: declarations as they are, statements in functions whose parameters are the
/// variables that the examples use without declaring them. Messages of the compiler name the file and the line of the
/// documentation.
struct ExampleHarness {
  /// The variables that an example may use without declaring them: names and types.
  var surroundings: [(name: String, type: String)]
  /// Other types in the files whose path contains a text.
  var exceptions: [(path: String, name: String, type: String)] = []
  /// Modules that every example may use.
  var modules: [String]
  /// Declarations that examples use, such as a custom stage.
  var declarations = ""

  /// The source of a file with all of the examples.
  func source(of examples: [DocumentedExample]) -> String {
    var imports = Set(modules)
    var text = ""
    let files = Dictionary(grouping: examples, by: \.path).sorted { $0.key < $1.key }
    for (number, (path, examples)) in files.enumerated() {
      // All examples of a file share one scope: an example may use the declarations of those before it.
      text += "struct File\(number) {\n"
      for (index, example) in examples.enumerated() {
        let parts = Parts(example)
        imports.formUnion(parts.imports)
        for (line, code) in parts.declarations { text += located(code, line, example) }
        guard !parts.statements.isEmpty else { continue }
        let parameters = parameters(at: path).map { "\($0): \($1)" }.joined(separator: ", ")
        text += "static func example\(index)(\(parameters)) async throws {\n"
        for (line, code) in parts.statements { text += located(code, line, example) }
        text += "}\n"
      }
      text += "}\n"
    }
    return imports.sorted().map { "\(Self.attribute(of: $0))import \($0)\n" }.joined() + declarations + "\n" + text
  }

  /// Those of ledgers, so that their documentation can have examples, too.
  private static func attribute(of module: String) -> String {
    ["Downpipe", "DownpipeTesting"].contains(module) ? "@_spi(Ledger) " : ""
  }

  private func parameters(at path: String) -> [(String, String)] {
    surroundings.map { name, type in
      (name, exceptions.first { path.contains($0.path) && $0.name == name }?.type ?? type)
    }
  }

  private func located(_ code: [String], _ line: Int, _ example: DocumentedExample) -> String {
    "#sourceLocation(file: \"\(example.path)\", line: \(line))\n" + code.joined(separator: "\n")
      + "\n#sourceLocation()\n"
  }

  /// An example's imports, declarations and statements, each run of lines with the number of its first line.
  private struct Parts {
    var imports: [String] = []
    var declarations: [(line: Int, code: [String])] = []
    var statements: [(line: Int, code: [String])] = []

    private static let words: Set<String> = ["struct", "enum", "class", "final", "actor", "protocol", "func", "@Test"]

    init(_ example: DocumentedExample) {
      var isInDeclaration = false
      for (index, code) in example.code.enumerated() {
        let line = example.line + index
        let words = code.split(separator: " ")
        if isInDeclaration {
          declarations[declarations.count - 1].code.append(code)
          // A declaration that begins at the margin ends there, too.
          if code.first == "}" { isInDeclaration = false }
        } else if let keyword = words.firstIndex(of: "import"), words[..<keyword].allSatisfy({ $0.first == "@" }) {
          imports.append(contentsOf: words.dropFirst(keyword + 1).prefix(1).map(String.init))
        } else if let word = words.first, Self.words.contains(String(word)), code.first != " " {
          declarations.append((line, [code]))
          isInDeclaration = !code.hasSuffix("}")
        } else if let last = statements.last, last.line + last.code.count == line {
          statements[statements.count - 1].code.append(code)
        } else if code.contains(where: { !$0.isWhitespace }) {
          statements.append((line, [code]))
        }
      }
    }
  }
}
