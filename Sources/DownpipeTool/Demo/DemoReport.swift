import Crypto
import Downpipe
import DownpipeTesting
import Foundation

/// What the demo says when the show is over.
struct DemoReport {
  /// The files of the show with the ids of their downloads.
  var files: [(file: DemoFile, id: DownloadID)]
  /// What happened.
  var diary: Diary.Pages
  /// The folder.
  var folder: String

  /// What each stage did, file by file, in 80 columns.
  var story: String {
    var lines = ["What each stage did"]
    for (file, id) in files {
      var label = file.name
      // The step for gzip files leaves the others as they are.
      for entry in diary.entries(of: id) where entry.stage != "Gunzip" || file.unpacked != nil {
        let stage = DisplayWidth.fit(entry.stage, to: 14)
        let start = "  \(DisplayWidth.fit(label, to: 19))  \(stage)  "
        lines += Self.wrapped(DisplayWidth.harmless(entry.text), after: start)
        label = ""
      }
    }
    return lines.joined(separator: "\n")
  }

  /// Looks at every file on disk. Says what is there, and whether all went as planned.
  func verify() -> (text: String, isAsPlanned: Bool) {
    var lines: [String] = []
    var isAsPlanned = true
    for (file, id) in files {
      let path = folder + "/" + file.finalName
      let bytes = FileManager.default.contents(atPath: path)
      if file.fault == .damaged {
        isAsPlanned = isAsPlanned && bytes == nil
        lines.append(
          "  \(DisplayWidth.fit(file.name, to: 19))  \(bytes == nil ? "not there, as it must be" : "IS THERE")")
        continue
      }
      let isRight = bytes.map { Array($0) == file.finalContent.allBytes } ?? false
      isAsPlanned = isAsPlanned && isRight && hasDoneItsPart(file, id)
      let digest = bytes.map { "sha-256 " + Self.digest($0).prefix(16) + "…" } ?? "missing"
      lines.append("  \(DisplayWidth.fit(file.finalName, to: 19))  \(isRight ? "verified" : "WRONG")  \(digest)")
    }
    return (lines.joined(separator: "\n"), isAsPlanned)
  }

  /// Whether the fault happened, and was dealt with in the way it should be.
  private func hasDoneItsPart(_ file: DemoFile, _ id: DownloadID) -> Bool {
    let entries = diary.entries(of: id)
    return switch file.fault {
    case .none, .damaged: true
    case .cut: entries.contains { $0.text.contains("resumes at byte") }
    case .busy: entries.contains { $0.stage == "Retry" }
    }
  }

  /// SHA-256 as hexadecimal text.
  static func digest(_ bytes: some DataProtocol) -> String {
    SHA256.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// A text in lines of 80 columns, behind `start` and then behind as much space.
  static func wrapped(_ text: String, after start: String, columns: Int = 79) -> [String] {
    let indent = DisplayWidth.of(start)
    var lines: [String] = []
    var line = start
    var isEmpty = true
    for word in text.split(separator: " ") {
      // Digests: the beginning tells them apart.
      let word = word.count > 40 ? word.prefix(12) + "…" : word
      if !isEmpty, DisplayWidth.of(line) + 1 + DisplayWidth.of(word) > columns {
        lines.append(line)
        line = String(repeating: " ", count: indent)
        isEmpty = true
      }
      line += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines + [line]
  }
}
