internal import Foundation
internal import Synchronization

/// Thrown by a transfer that has found another version of the file, which is fetched beside the bytes on disk: by a transfer of
/// its own, which begins with the same reply.
final class AnotherVersion: Error {
  /// Why the bytes on disk are not those of the file any more.
  let error: DownloadError
  /// The request; `nil` if there is no reply to begin with.
  let request: SourceRequest?
  private let opened: Mutex<(SourceRequest, Date, SourceReply)?>
  /// Whether the version is wanted, or proved by a digest.
  let isProven: Bool

  /// - Parameters:
  ///   - isProven: Whether the version is wanted, or proved by a digest.
  ///   - reply: The reply to begin with, its request and the time of it; without it, the server is asked again.
  init(
    because error: DownloadError, isProven: Bool = false, beginningWith reply: (SourceRequest, Date, SourceReply)? = nil
  ) {
    self.error = error
    self.isProven = isProven
    request = reply?.0
    opened = Mutex(reply)
  }

  /// Removes and returns the request, its time and the reply; `nil` the second time.
  func take() -> (SourceRequest, Date, SourceReply)? { opened.withLock { $0.take() } }

  /// Ends the reply, unless it was taken.
  func discard() { take()?.2.body.discard() }

  /// Whether the reply fits the checkpoint of an earlier version, by its validator.
  func fits(_ checkpoint: Checkpoint) -> Bool {
    opened.withLock { opened in
      guard let (request, _, reply) = opened else { return false }
      let comparison = ResumePlan.comparison(of: checkpoint, with: reply, to: request)
      return comparison == .sameStrong || comparison == .sameWeak
        ? ReplyRow.of(reply, to: request, known: checkpoint, .resumed) == .fits : false
    }
  }
}
