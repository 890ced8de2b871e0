internal import Foundation

extension DownloadRequest {
  /// What happens when a finished download is added again.
  ///
  /// ```swift
  /// let index = try DownloadRequest("https://example.org/index.json", id: "index").with(\.refresh, .ifChanged)
  /// let file = try await downloader.add(index).value  // the present one, also the tenth time
  /// ```
  /// The server is asked whether the file has changed, with the validator of the published bytes (RFC 9110 §13). If it
  /// has not, the download finishes again without a byte. If it has, the new file is fetched and takes the place of the
  /// published one, which stays until then. If the file on disk was removed or changed by another program, or if the
  /// server sends no validators, it is fetched as a whole.
  ///
  /// | the download | `never` | `ifChanged` | `whenStale` |
  /// | --- | --- | --- | --- |
  /// | waits, runs or is paused | goes on | goes on | goes on |
  /// | has failed | is resumed | is resumed | is resumed |
  /// | was cancelled | stays cancelled | stays cancelled | stays cancelled |
  /// | is finished | nothing happens | the server is asked | the server is asked, unless the file is fresh |
  ///
  /// A folder, such as an unpacked archive, is never replaced, because other programs may have put files into it: the new
  /// one lands beside it, under a name by the ``ConflictPolicy``. Remove or rename the earlier one in an observer or a
  /// `Then` if only the newest is wanted.
  ///
  /// If the server cannot be asked, the download fails or waits for its next attempt like any other. The published file
  /// stays, see ``DownloadStatus/earlierArtifact``, and resuming the download asks again. ``Downloader/refresh(_:)`` asks
  /// also if the request does not; ``Downloader/update(_:_:)`` only changes what the next addition does.
  public enum Refresh: String, Sendable, Hashable, Codable, CaseIterable {
    /// Nothing: the published file is used as long as it exists.
    case never
    /// The server is asked each time.
    case ifChanged
    /// The server is asked when the file is no longer fresh by what the server has said (`Cache-Control` and `Expires`,
    /// RFC 9111 §4.2), or has said nothing. How long a file stays fresh is not guessed from its age.
    case whenStale

    /// The longest time that a file counts as fresh; see ``SourceReply/longestFreshness``.
    static let longestFreshness = Duration.seconds(365 * 86_400)

    /// Whether an addition of a finished download asks the server.
    ///
    /// - Parameter end: The time until which the file is fresh; `nil` if the server has not said.
    func asks(at now: Date, freshUntil end: Date?) -> Bool {
      switch self {
      case .never: return false
      case .ifChanged: return true
      case .whenStale:
        guard let end else { return true }
        // A later end was set by a clock that has jumped since. An hour is for clocks that are set back by one.
        return end <= now || end > now.addingTimeInterval(Self.longestFreshness / .seconds(1) + 3_600)
      }
    }
  }
}
