internal import Foundation
internal import Synchronization

/// Thrown by a transfer that has found another version of the file, which is fetched beside the bytes on disk: by a transfer of
/// its own, which begins with the same reply.
final class AnotherVersion: Error {
  /// Why the bytes on disk are not those of the file any more.
  let error: DownloadError
  /// The request; `nil` if there is no reply to begin with.
  let request: SourceRequest?
  private let reply: Mutex<SourceReply?>
  private let time: Date
  /// Whether the version is wanted, or proved by a digest.
  let isProven: Bool

  init(
    because error: DownloadError, isProven: Bool = false, reply: SourceReply, to request: SourceRequest, at time: Date
  ) {
    self.error = error
    self.request = request
    self.isProven = isProven
    self.reply = Mutex(reply)
    self.time = time
  }

  /// The server is asked again.
  /// - Parameter isProven: Whether the version is wanted, or proved by a digest.
  init(because error: DownloadError, isProven: Bool) {
    self.isProven = isProven
    self.error = error
    request = nil
    reply = Mutex(nil)
    time = .distantPast
  }

  /// Removes and returns the request, its time and the reply; `nil` the second time.
  func take() -> (SourceRequest, Date, SourceReply)? {
    guard let request, let reply = reply.withLock({ $0.take() }) else { return nil }
    return (request, time, reply)
  }

  /// The error of a version that is not begun, because there were too many. Its reply ends.
  var refused: DownloadError {
    discard()
    return error
  }

  /// Ends the reply, unless it was taken.
  func discard() { take()?.2.body.discard() }

  /// Whether the reply fits the checkpoint of an earlier version, by its validator.
  func fits(_ checkpoint: Checkpoint) -> Bool {
    guard let request else { return false }
    return reply.withLock { reply in
      guard let reply else { return false }
      let comparison = ResumePlan.comparison(of: checkpoint, with: reply, to: request)
      return comparison == .sameStrong || comparison == .sameWeak
        ? ReplyRow.of(reply, to: request, known: checkpoint, .resumed) == .fits : false
    }
  }
}
