import DownpipeCore
import Synchronization

/// What other threads have to say to the thread of a scripted server, which a byte through a socket wakes up.
final class ServerInbox: Sendable {
  enum Message: Sendable {
    /// The gate is open at which the reply of a connection waits.
    case gateIsOpen(connection: Int)
    /// The server shuts down.
    case end
  }

  private let messages = Mutex<[Message]>([])
  private let sender: ServerSocket
  private let receiver: ServerSocket

  /// - Throws: `DownloadError` with `.network` if the process has no descriptors left.
  init() throws(DownloadError) { (sender, receiver) = try ServerSocket.pair() }

  /// What becomes readable when there are messages.
  var descriptor: Int32 { receiver.descriptor }

  /// Adds a message, also one that is never read because the thread has ended.
  func post(_ message: Message) {
    let isFirst = messages.withLock { messages in
      messages.append(message)
      return messages.count == 1
    }
    if isFirst { _ = sender.send([0]) }
  }

  /// Takes all messages.
  func take() -> [Message] {
    // First the byte: one that is sent after it belongs to messages that are taken here, or later.
    _ = receiver.receive()
    return messages.withLock { exchange(&$0, with: []) }
  }
}
