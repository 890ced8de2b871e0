import Downpipe
import Foundation

/// Shows the downloads of one command. An error that a method throws ends the command.
protocol RunOutput {
  /// Shows a running or waiting download. `isNews` is false where its state has been shown before: see ``StateNews``.
  mutating func show(_ status: DownloadStatus, isNews: Bool) throws
  /// Shows how a download ended; called once for each.
  mutating func show(_ result: DownloadResult) throws
  /// Shows what one should know about a download although it ends nothing.
  mutating func show(_ notice: DownloadNotice) throws
  /// Writes what has been collected: after each batch of changes, and every tenth of a second.
  mutating func flush(_ tally: Tally, at now: Date) throws
  /// Writes the end of the command.
  mutating func end(_ tally: Tally, at now: Date) throws
}

/// What one should know about a download of a command although it ends nothing.
struct DownloadNotice {
  var id: DownloadID
  /// The URL as it was typed; outputs show it by ``URLStyle``.
  var url: String
  var error: DownloadError
}

/// How one download of a command ended.
struct DownloadResult {
  var id: DownloadID
  /// The URL as it was typed; outputs show it by ``URLStyle``.
  var url: String
  /// Where the file is; `nil` after a failure.
  var path: String?
  /// The size of the file; after a failure, the bytes received.
  var bytes: Int64 = 0
  var attempts = 0
  /// The byte at which the latest attempt resumed.
  var resumedFrom: Int64 = 0
  /// Bytes received over the network by all runs, repeated ones included.
  var bytesFetched: Int64 = 0
  /// The digests that were compared with the file, and are right.
  var verified: [VerifiedDigest] = []
  /// `nil` when the download finished.
  var error: DownloadError?
  /// Whether an earlier command had finished the download.
  var wasFinishedBefore = false
  /// Whether the file may be incomplete: its body ended with a connection of TLS, without the sign that excludes a cut.
  var isEndUnconfirmed = false

  var isFinished: Bool { error == nil }
}

extension DownloadResult {
  /// `nil` for a download that continues by itself.
  init?(_ status: DownloadStatus, wasFinishedBefore: Bool = false) {
    var error: DownloadError?
    switch status.state {
    case .waiting, .transferring, .processing: return nil
    case .finished: break
    case .failed(let failure): error = failure
    case .cancelled: error = DownloadError(.cancelled, "the download was cancelled")
    case .paused: error = DownloadError(.cancelled, "the download was paused; run the command again to resume it")
    }
    self.init(
      id: status.id, url: status.request.givenURL, path: status.artifact?.place,
      bytes: status.artifact?.size.bytes ?? status.progress.received, attempts: status.attempts,
      resumedFrom: status.resumedFrom, bytesFetched: status.bytesFetched, verified: status.verified,
      error: error,
      wasFinishedBefore: wasFinishedBefore)
  }
}

/// The counts of one command.
struct Tally: Hashable {
  var total = 0
  var finished = 0
  /// How many of ``finished`` an earlier command had finished.
  var finishedBefore = 0
  var failed = 0
  /// The sizes of the finished files.
  var finishedBytes: Int64 = 0
  /// When the command began.
  var startedAt: Date
  /// Whether the list of URLs has been read to its end.
  var isComplete = false

  /// The downloads without a result.
  var open: Int { total - finished - failed }

  mutating func count(_ result: DownloadResult) {
    finished += result.isFinished ? 1 : 0
    failed += result.isFinished ? 0 : 1
    finishedBefore += result.isFinished && result.wasFinishedBefore ? 1 : 0
    finishedBytes = finishedBytes.addingSaturated(result.isFinished ? result.bytes : 0)
  }
}
