import Foundation

/// Cases from other projects' test suites, which are not part of this repository.
enum Corpora {
  /// The folder of the cases, named by an environment variable.
  static let folder = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"]
  static var isPresent: Bool { folder != nil }

  static func read<Value: Decodable>(_ path: String, as type: Value.Type) throws -> Value {
    let data = try Data(contentsOf: URL(filePath: folder ?? "").appending(path: path))
    return try JSONDecoder().decode(type, from: data)
  }

  /// Returns the fields of a raw head, one per line, without the status line.
  static func rawFields(_ head: String) -> [(name: String, value: String)] {
    head.unicodeScalars.split(separator: "\n").dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (String(line[..<colon]), String(line[line.index(after: colon)...]))
    }
  }
}
