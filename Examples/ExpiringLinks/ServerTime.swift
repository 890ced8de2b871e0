import DownpipeTesting
import Foundation

/// The time of servers, links and client, and how it passes while a server sends.
struct ServerTime: Sendable {
  /// The present time.
  let now: @Sendable () -> Date
  /// Returns a reply that takes the time of sending `bytes` at `speed` bytes per second.
  let send: @Sendable (_ reply: ScriptedReply, _ bytes: Int64, _ speed: Int) -> ScriptedReply

  /// Real time: the server sends slowly. A test advances a clock instead.
  static let wall = ServerTime(
    now: { Date() }, send: { reply, _, speed in reply.after(.throttle(bytesPerSecond: speed)) })
}
