import DownpipeCore
import Foundation

/// One line for each download: redrawn in place on a terminal, otherwise printed at each change of state.
struct Display {
  private(set) var statuses: [DownloadID: DownloadStatus] = [:]
  private let ids: [DownloadID]
  private let isTerminal = isatty(STDOUT_FILENO) == 1
  private var hasDrawn = false

  init(_ ids: [DownloadID]) { self.ids = ids }

  /// Whether every download has finished or failed.
  var isComplete: Bool { ids.allSatisfy { statuses[$0]?.state.phase.isFinal ?? false } }

  mutating func show(_ changed: [DownloadStatus]) {
    let before = statuses
    for status in changed { statuses[status.id] = status }
    if isTerminal {
      draw()
    } else {
      for status in changed where status.state != before[status.id]?.state { print(line(status)) }
    }
  }

  /// Moves to the first line of the last frame and overwrites it. The terminal cuts what is too long for it.
  private mutating func draw() {
    let up = hasDrawn ? "\u{1B}[\(ids.count)A" : ""
    let lines = ids.map { (statuses[$0].map(line) ?? "") + "\u{1B}[K\n" }
    let frame = "\u{1B}[?7l" + up + lines.joined() + "\u{1B}[?7h"
    FileHandle.standardOutput.write(Data(frame.utf8))
    hasDrawn = true
  }

  private func line(_ status: DownloadStatus) -> String {
    let name = status.artifact?.name ?? status.request.url.lastPathComponent
    // Column 18 on a terminal, however wide the letters of the name are.
    return name + (isTerminal ? "\u{1B}[18G" : ": ") + text(status)
  }

  private func text(_ status: DownloadStatus) -> String {
    switch status.state {
    case .transferring where isTerminal: bar(status.progress.fraction ?? 0) + "  " + status.progress.formatted()
    case .transferring: "transferring" + history(status)
    case .processing(let step): step
    case .waiting(let reason): "\(reason)"
    case .finished(let artifact): "✓ \(artifact.size.formatted())" + history(status)
    case .failed(let error): "✗ \(error.code.rawValue): \(error.message)"
    case .paused, .cancelled: status.state.phase.rawValue
    }
  }

  private func history(_ status: DownloadStatus) -> String {
    (status.attempts > 1 ? ", attempt \(status.attempts)" : "")
      + (status.resumedFrom > 0 ? ", resumed at byte \(status.resumedFrom)" : "")
  }

  private func bar(_ fraction: Double) -> String {
    let cells = Int(fraction * 24)
    return String(repeating: "█", count: cells) + String(repeating: "░", count: 24 - cells)
  }
}
