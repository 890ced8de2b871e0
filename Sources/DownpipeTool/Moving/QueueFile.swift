import DownpipeColumns
import Foundation

/// The form of an exported queue: lines of JSON, of which the first one names the form, the last one says how many
/// downloads there were, and each other one is a download (``RecordLine``).
///
/// The last line tells a complete file from one that was cut off.
enum QueueFile {
  /// The version that this program writes, and the newest one that it reads.
  static let version: Int64 = 1
  private static let format = "downpipe-queue"

  static let firstLine = "{\"format\":\"\(format)\",\"version\":\(version)}"

  static func lastLine(downloads: Int) -> String { "{\"downloads\":\(downloads)}" }

  /// What a line of the file is.
  enum Line: Hashable {
    case first(version: Int64)
    case last(downloads: Int64)
    case download
  }

  /// Returns what a line is, without reading more of it than that takes.
  static func kind(of line: [UInt8]) -> Line {
    // The lines of downloads are longer, or have other members.
    guard line.count <= 200, let value = try? JSONDecoder().decode(JSONTree.self, from: Data(line)),
      case .object(let members) = value
    else { return .download }
    if members["format"] == .string(format), case .integer(let version)? = members["version"] {
      return .first(version: version)
    }
    if members.count == 1, case .integer(let downloads)? = members["downloads"] { return .last(downloads: downloads) }
    return .download
  }
}
