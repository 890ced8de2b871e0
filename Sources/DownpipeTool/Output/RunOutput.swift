import Downpipe
import Foundation

/// Tells somebody what becomes of the downloads of one command.
///
/// What a method throws, such as ``OutputFile/BrokenPipe``, ends the command.
protocol RunOutput {
  /// Something about a download changed, and there is more to come.
  mutating func show(_ status: DownloadStatus) throws
  /// The last word on a download.
  mutating func show(_ word: LastWord) throws
  /// A batch of changes is over, or a tenth of a second has passed: time to write.
  mutating func flush(_ tally: Tally, at now: Date) throws
  /// Everything is over.
  mutating func end(_ tally: Tally, at now: Date) throws
}

/// The last word on one download.
struct LastWord {
  /// Its id.
  var id: DownloadID
  /// The URL as it was given, without its secrets.
  var url: String
  /// Where the file is; `nil` when it failed.
  var path: String?
  /// The size of the file, or what has been received of it.
  var bytes: Int64
  /// Attempts begun.
  var attempts: Int
  /// The byte at which the latest transfer went on.
  var resumedFrom: Int64
  /// Bytes received over the network, the repeated ones too.
  var bytesFetched: Int64
  /// What went wrong; `nil` when it is finished.
  var error: DownloadError?
  /// Whether an earlier run had finished it.
  var wasFinishedBefore = false

  /// Whether the file is there.
  var isFinished: Bool { error == nil }
}

extension LastWord {
  /// The last word on a download that will not go on by itself; `nil` for one that will.
  init?(_ status: DownloadStatus, wasFinishedBefore: Bool = false) {
    var artifact: Artifact?
    var error: DownloadError?
    switch status.state {
    case .waiting, .transferring, .processing: return nil
    case .finished(let result): artifact = result
    case .failed(let failure): error = failure
    case .cancelled: error = DownloadError(.cancelled, "somebody has cancelled it")
    case .paused: error = DownloadError(.cancelled, "somebody has paused it; run the command again to go on")
    }
    self.init(
      id: status.id, url: status.request.shownURL, path: artifact?.path,
      bytes: artifact?.size.bytes ?? status.progress.received, attempts: status.attempts,
      resumedFrom: status.resumedFrom, bytesFetched: status.bytesFetched, error: error,
      wasFinishedBefore: wasFinishedBefore)
  }

  /// The last word on a download that never began.
  init(id: DownloadID, url: String, error: DownloadError) {
    self.init(
      id: id, url: url.redactedURL, path: nil, bytes: 0, attempts: 0, resumedFrom: 0, bytesFetched: 0, error: error)
  }
}

/// How far a command is as a whole.
struct Tally: Hashable {
  /// The downloads it is about.
  var total = 0
  /// Those that are finished.
  var finished = 0
  /// Those of ``finished`` that an earlier run had finished.
  var finishedBefore = 0
  /// Those that failed.
  var failed = 0
  /// The bytes of the finished files.
  var finishedBytes: Int64 = 0
  /// When the command began.
  var startedAt: Date
  /// Whether every download is known: the list of URLs has been read to its end.
  var isComplete = false

  /// Those that are still to be heard of.
  var open: Int { total - finished - failed }

  /// Counts a last word.
  mutating func count(_ word: LastWord) {
    if word.isFinished {
      finished += 1
      finishedBytes += word.bytes
      if word.wasFinishedBefore { finishedBefore += 1 }
    } else {
      failed += 1
    }
  }
}
