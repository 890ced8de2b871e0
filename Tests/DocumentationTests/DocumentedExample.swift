import Foundation

/// A block of Swift in the documentation: in a Markdown file, or in the comments of a declaration.
struct DocumentedExample: Sendable, Hashable {
  /// The file, relative to the package.
  let path: String
  /// The line of the file that the code begins in.
  let line: Int
  /// The code without the marks of a comment.
  let code: [String]

  /// Whether an ellipsis stands where code should be. An ellipsis in a comment or in a string does not count.
  var isIncomplete: Bool {
    code.contains { line in
      let text = line.replacing(/"[^"]*"/, with: "")
      return (text.firstRange(of: "//").map { text[..<$0.lowerBound] } ?? text[...]).contains("…")
    }
  }

  /// Every example below some folders of the package.
  static func all(in package: URL, below folders: [String]) throws -> [DocumentedExample] {
    let files = FileManager.default
    return try folders.flatMap { folder -> [String] in
      let root = package.appending(path: folder).path(percentEncoded: false)
      var isFolder: ObjCBool = false
      guard files.fileExists(atPath: root, isDirectory: &isFolder), isFolder.boolValue else { return [folder] }
      return try files.subpathsOfDirectory(atPath: root).sorted().map { "\(folder)/\($0)" }
    }.flatMap { path -> [DocumentedExample] in
      guard path.hasSuffix(".md") || path.hasSuffix(".swift") else { return [] }
      return blocks(of: try String(contentsOf: package.appending(path: path), encoding: .utf8), at: path)
    }
  }

  /// The examples in the text of one file.
  static func blocks(of text: String, at path: String) -> [DocumentedExample] {
    let isSource = path.hasSuffix(".swift")
    var blocks: [DocumentedExample] = []
    var open: (line: Int, code: [String])?
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      guard let content = isSource ? uncommented(line) : String(line) else {
        open = nil
        continue
      }
      if let (start, code) = open {
        if content.hasPrefix("```") {
          blocks.append(DocumentedExample(path: path, line: start, code: code))
          open = nil
        } else {
          open = (start, code + [content])
        }
      } else if content == "```swift" {
        open = (index + 2, [])
      }
    }
    return blocks
  }

  /// A line of documentation without its marks; `nil` for other lines.
  private static func uncommented(_ line: Substring) -> String? {
    let text = line.drop(while: \.isWhitespace)
    guard text.hasPrefix("///") else { return nil }
    let content = text.dropFirst(3)
    return String(content.hasPrefix(" ") ? content.dropFirst() : content)
  }
}
