public import Foundation

/// A change of a download.
public struct DownloadEvent: Sendable, Hashable {
  /// The request of the download, with id, host, tags and metadata.
  public let request: DownloadRequest
  /// The kind of change, with its values.
  public let kind: Kind
  /// The calendar time of the change. It may jump when the system's date is set.
  public let date: Date
  /// The time of the change on the downloader's clock, ``TimeSource/now``. It never jumps: compute intervals with it,
  /// because an observer may read an event late.
  public let instant: Duration
  /// Whether a run of this downloader tells it. Otherwise it was read from the ledger, which also has the states of
  /// downloads that other owners run.
  public let isOwn: Bool
  /// The id of the download.
  public var id: DownloadID { request.id }

  /// A kind of change.
  public enum Kind: Sendable, Hashable {
    /// The download has entered a state. That a waiting download has another reason to wait is only told to those who watch
    /// it by itself, with ``Download/events``, and not to observers.
    case state(DownloadState)
    /// Bytes have arrived. Sent at most a few times a second, and at the end of each transfer.
    case progress(TransferProgress)
    /// An attempt has begun, and continues at an offset.
    case started(attempt: Int, from: Int64)
    /// The stored bytes cannot be used, for the given reason. The transfer starts again at the first byte.
    case restarted(DownloadError)
    /// A reply cannot be used as intended, for the given reason. The engine sends another request at once or uses the
    /// reply in another way. The stored bytes are kept. Also what a step has made is told here if it may not be what was
    /// meant, such as an empty file.
    case refused(DownloadError)
    /// An attempt has failed, or a checkpoint could not be saved. In the first case a state follows, or another place is
    /// asked; in the second the transfer continues. With `.notOwner`, another owner has taken the download over, and the
    /// states that follow are its until one is ``DownloadEvent/isOwn`` again.
    case attemptFailed(DownloadError)
    /// The request was redirected to the URL, whose secrets are hidden. Sent for each redirect when the reply has
    /// arrived, before ``started(attempt:from:)``.
    case redirected(to: String)
    /// The link had expired and was replaced by a fresh one, whose secrets are hidden.
    case linkRefreshed(to: String)
    /// A step has come further. Sent at most a few times a second, and only for steps that report it; see
    /// ``ProcessingContext/report(_:)``.
    case stepProgress(StepProgress)
    /// A step has verified digests. Sent before its ``stepFinished(name:)``, once the ledger has them.
    case verified([VerifiedDigest])
    /// A step has finished.
    case stepFinished(name: String)
    /// The reader was too slow, and so many events have been dropped before this one, of this and of other downloads. No
    /// progress is among them: it is dropped first, without a word. ``Downloader/statuses(_:)`` has what is true now.
    case missed(Int)
    /// The record of the download was removed; its partial and, on request, its file are deleted next. No other
    /// event follows until the id is added again.
    case removed
  }

  /// Creates an event, by default with the current date and the instant zero.
  public init(
    _ request: DownloadRequest, _ kind: Kind, date: Date = Date(), instant: Duration = .zero, isOwn: Bool = true
  ) {
    self.request = request
    self.kind = kind
    self.date = date
    self.instant = instant
    self.isOwn = isOwn
  }
}
