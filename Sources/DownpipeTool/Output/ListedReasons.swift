import Downpipe
import DownpipeJSON
import Foundation

/// Why the downloads of a list wait, as far as the ledger and the options of the command tell.
struct ListedReasons: Sendable {
  /// What the gates of the command say.
  var rules = GateRules()
  /// The downloads that other commands are working on.
  var running = RunningDownloads()

  /// - Parameter zone: The time zone of due times.
  func reason(for download: DownloadStatus, in zone: TimeZone = .current) -> String? {
    switch download.state {
    case .waiting(.retry), .waiting(.missing):
      download.hindrance.map { reason in
        (reason.until.map { "until \($0.shown(in: zone)): " } ?? "") + reason.description
      }
    case .waiting(.suspended):
      rules.reason(for: download) ?? turn(of: download)
    case .waiting(let reason):
      if case .dependency = reason { reason.description } else { nil }
    default: nil
    }
  }

  /// Limits belong to the command that downloads, so that only their effect is known.
  private func turn(of download: DownloadStatus) -> String? {
    guard running.total > 0 else { return download.error == nil ? "no download is running" : nil }
    let total = running.total == 1 ? "1 download is running" : "\(running.total) downloads are running"
    let same = running.perHost[download.request.host, default: 0]
    return "waiting for its turn: \(total)" + (same > 0 ? ", \(same) from its host" : "")
  }
}

extension RunningDownloads {
  /// The downloads of a ledger that other processes are working on.
  init(elsewhere statuses: [DownloadStatus]) {
    self.init()
    for status in statuses where status.state == .waiting(.elsewhere) { insert(status.request.candidate) }
  }
}

extension Date {
  /// The local date and time.
  func shown(in zone: TimeZone) -> String {
    formatted(
      Date.ISO8601FormatStyle(timeZone: zone).year().month().day().dateTimeSeparator(.space)
        .time(includingFractionalSeconds: false))
  }
}
