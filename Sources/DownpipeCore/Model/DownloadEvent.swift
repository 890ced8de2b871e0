/// Something that happened to a download.
public struct DownloadEvent: Sendable, Hashable {
  /// What was asked for: id, host, tags and metadata, say.
  public let request: DownloadRequest
  /// What happened.
  public let kind: Kind
  /// Which download.
  public var id: DownloadID { request.id }

  /// What happened.
  public enum Kind: Sendable, Hashable {
    /// It went into another state.
    case state(DownloadState)
    /// Bytes arrived; sent a few times a second at most.
    case progress(TransferProgress)
    /// An attempt began, going on at a byte.
    case started(attempt: Int, from: Int64)
    /// What was on disk could not be used: why it begins at the beginning again.
    case restarted(DownloadError)
    /// An answer could not be used as it was meant: why. The server is asked in another way at once, or the answer
    /// is used in another way; what is on disk stays.
    case refused(DownloadError)
    /// An attempt failed; the state that follows says whether there is another.
    case attemptFailed(DownloadError)
    /// The request was redirected to the URL (secrets hidden).
    case redirected(to: String)
    /// The link had died, and a fresh one takes its place (secrets hidden).
    case linkRefreshed(to: String)
    /// A step finished.
    case stepFinished(name: String)
    /// It was removed: record and partial are gone. Nothing more happens to it.
    case removed
  }

  /// Makes an event.
  public init(_ request: DownloadRequest, _ kind: Kind) {
    self.request = request
    self.kind = kind
  }
}
