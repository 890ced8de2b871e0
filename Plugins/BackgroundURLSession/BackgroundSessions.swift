import Dispatch
import DownpipeCore
import Synchronization

/// The background sessions of this process by identifier, and the app's completion handlers.
///
/// Foundation allows one session per identifier and process, so a session is made once and outlives the downloaders
/// that use it.
final class BackgroundSessions: Sendable {
  static let shared = BackgroundSessions()

  private struct State {
    var channels: [String: BackgroundChannel] = [:]
    var inUse: Set<String> = []
    /// Handlers for sessions that do not exist yet.
    var pending: [String: [Int]] = [:]
    var lastHandler = 0
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "downpipe.urlsession.background.sessions")
  @MainActor private var handlers: [Int: () -> Void] = [:]

  init() {}

  // MARK: Sessions

  /// Returns the session of an identifier, made on its first use, to one source at a time.
  ///
  /// - Throws: ``DownloadError`` with `.inUse` while another source of this process uses it; what `make` throws.
  func attach(
    _ identifier: String, make: @escaping @Sendable () throws -> (BackgroundChannel, any DownloadTasks)
  ) async throws -> BackgroundChannel {
    try await withCheckedThrowingContinuation { continuation in
      // Making a session reads a folder.
      queue.async { continuation.resume(with: Result { try self.attachNow(identifier, make: make) }) }
    }
  }

  private func attachNow(
    _ identifier: String, make: () throws -> (BackgroundChannel, any DownloadTasks)
  ) throws -> BackgroundChannel {
    guard !state.withLock({ $0.inUse.contains(identifier) }) else {
      throw DownloadError(
        .inUse,
        "another downloader of this process uses the background session “\(identifier.prefix(200).escaped)”: "
          + "shut it down first, or use another identifier")
    }
    if let channel = state.withLock({ $0.channels[identifier] }) {
      state.withLock { _ = $0.inUse.insert(identifier) }
      channel.tellAndWait(.attached)
      return channel
    }
    let (channel, tasks) = try make()
    channel.tellAndWait(.attached)
    let pending = state.withLock { state in
      state.channels[identifier] = channel
      state.inUse.insert(identifier)
      return state.pending.removeValue(forKey: identifier) ?? []
    }
    for handler in pending { channel.tell(.handlerRegistered(handler)) }
    tasks.begin(channel)
    return channel
  }

  /// Releases the session of a source that has been stopped.
  func detach(_ identifier: String, _ channel: BackgroundChannel) async {
    await channel.tell(andAwait: .detached)
    _ = state.withLock { $0.inUse.remove(identifier) }
  }

  // MARK: Handlers

  /// Keeps a completion handler until the session has processed all events.
  @MainActor func register(_ identifier: String, _ completion: @escaping () -> Void) {
    let (handler, channel) = state.withLock { state in
      state.lastHandler += 1
      let channel = state.channels[identifier]
      if channel == nil { state.pending[identifier, default: []].append(state.lastHandler) }
      return (state.lastHandler, channel)
    }
    handlers[handler] = completion
    channel?.tell(.handlerRegistered(handler))
  }

  /// Calls handlers, on the main thread, in order.
  func call(_ numbers: [Int]) {
    Task { @MainActor in
      for number in numbers { handlers.removeValue(forKey: number)?() }
    }
  }
}
