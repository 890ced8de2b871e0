import Foundation

/// Compares results with what was served.
enum Comparing {
  /// The first difference, in words; `nil` when the files have the same bytes.
  static func difference(of path: String, from original: String) -> String? {
    let name = URL(filePath: path).lastPathComponent
    guard let file = FileHandle(forReadingAtPath: path) else { return "\(name) is missing" }
    guard let other = FileHandle(forReadingAtPath: original) else { return "the original of \(name) is missing" }
    defer {
      try? file.close()
      try? other.close()
    }
    do {
      let (size, expected) = (try file.seekToEnd(), try other.seekToEnd())
      guard size == expected else { return "\(name) has \(size) bytes instead of \(expected)" }
      try file.seek(toOffset: 0)
      try other.seek(toOffset: 0)
      var offset = 0
      while true {
        let (block, wanted) = (try file.read(upToCount: 1 << 20), try other.read(upToCount: 1 << 20))
        guard block == wanted else { return "\(name) differs in the MiB from \(offset)" }
        guard let block, !block.isEmpty else { return nil }
        offset += block.count
      }
    } catch {
      return "\(error)"
    }
  }
}
