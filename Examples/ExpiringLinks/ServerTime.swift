import DownpipeTesting
import Foundation

/// What time it is for servers, links and client, and how it passes while a server sends.
struct ServerTime: Sendable {
  /// The time.
  let now: @Sendable () -> Date
  /// A reply, with its body's bytes and their speed in bytes a second, that takes the time it should.
  let send: @Sendable (_ reply: ScriptedReply, _ bytes: Int64, _ speed: Int) -> ScriptedReply

  /// The clock on the wall: the server sends slowly. A test's clock is put forward instead.
  static let wall = ServerTime(
    now: { Date() }, send: { reply, _, speed in reply.after(.throttle(bytesPerSecond: speed)) })
}
