import DownpipeCore
import DownpipeTesting

/// One file of the demo's server, and what goes wrong on its way.
struct DemoFile: Sendable {
  /// What the server does wrong.
  enum Fault: Sendable, Hashable {
    /// Nothing.
    case none
    /// The first time, the connection is cut after so many bytes.
    case cut(after: Int64)
    /// The first time, it asks to be left alone for a second.
    case busy
    /// The bytes are never those that were promised.
    case damaged
  }

  /// Its name.
  var name: String
  /// What the server serves.
  var content: ScriptedContent
  /// How fast, in bytes a second.
  var speed: Int
  /// What goes wrong.
  var fault = Fault.none
  /// How much it matters.
  var priority = Priority.normal
  /// What is to come out of it, where that differs from what is served.
  var unpacked: ScriptedContent?

  /// The name it is to have in the end.
  var finalName: String {
    #if Zlib
      unpacked == nil ? name : String(name.dropLast(3))
    #else
      name
    #endif
  }

  /// The bytes it is to have in the end.
  var finalContent: ScriptedContent {
    #if Zlib
      unpacked ?? content
    #else
      content
    #endif
  }

  /// The files of the show.
  static let all: [DemoFile] = {
    let mebibyte: Int64 = 1 << 20
    let table = ScriptedContent.bytes(csv(lines: 60_000))
    return [
      DemoFile(
        name: "film.mkv", content: .pattern(size: 9 * mebibyte, seed: 1), speed: 2_000_000, priority: .high),
      DemoFile(
        name: "album.flac", content: .pattern(size: 6 * mebibyte, seed: 2), speed: 1_800_000,
        fault: .cut(after: 5 * mebibyte / 2)),
      DemoFile(
        name: "measurements.csv.gz", content: .bytes(StoredGzip.pack(table.allBytes)), speed: 1_200_000,
        unpacked: table),
      DemoFile(name: "system.iso", content: .pattern(size: 3 * mebibyte, seed: 3), speed: 2_000_000, fault: .busy),
      DemoFile(
        name: "damaged.zip", content: .pattern(size: 3 * mebibyte / 4, seed: 4), speed: 1_500_000, fault: .damaged),
      DemoFile(name: "東京の夜景.jpg", content: .pattern(size: 3 * mebibyte / 2, seed: 5), speed: 1_500_000),
      DemoFile(name: "notes.txt", content: .text(String(repeating: "All is well.\n", count: 900)), speed: 1_000_000),
    ]
  }()

  private static func csv(lines: Int) -> [UInt8] {
    var text = "time,station,temperature\n"
    for line in 0..<lines { text += "\(1_700_000_000 + line * 60),\(line % 12),\(line * 37 % 400)\n" }
    return Array(text.utf8)
  }
}
