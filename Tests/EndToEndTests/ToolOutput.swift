import DownpipeCore
import Foundation

/// A line of `--json`, or of `list --json`.
struct ToolLine: Decodable {
  struct Failure: Decodable {
    let code: String
    let message: String
  }

  struct Verified: Decodable {
    let algorithm: String
    let digest: String?
    let source: String
  }

  let event: String?
  let id: String?
  let url: String?
  let state: String?
  let priority: Int?
  let reason: String?
  let until: String?
  let path: String?
  let bytes: Int64?
  let attempts: Int?
  let resumedFrom: Int64?
  let bytesFetched: Int64?
  let generation: Int64?
  let total: Int64?
  let resumable: Bool?
  let error: Failure?
  let notice: Failure?
  let verified: [Verified]?

  init?(_ line: some StringProtocol) {
    guard let line = try? JSONDecoder().decode(ToolLine.self, from: Data(line.utf8)) else { return nil }
    self = line
  }
}

extension Command.Outcome {
  var toolLines: [ToolLine] { lines.compactMap { ToolLine($0) } }
  /// One line for each download that has ended.
  var results: [ToolLine] { toolLines.filter { $0.event == "finished" || $0.event == "failed" } }
  /// All output, for messages.
  var everything: String { "status \(status)\n\(output.suffix(4000))\n\(errors.suffix(2000))" }
}

extension Command {
  /// The tool, started by a program that becomes it: `ip netns exec`, or a shell that sets a limit first.
  static func downpipe(
    _ arguments: [String], by launcher: [String], environment: [String: String] = [:]
  ) throws -> Command {
    let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "downpipe").path
    guard FileManager.default.isExecutableFile(atPath: tool) else {
      throw DownloadError(.invalidRequest, "\(tool) is missing: build the package first (swift build)")
    }
    return Command(launcher[0], launcher.dropFirst() + [tool] + arguments, environment: environment)
  }
}
