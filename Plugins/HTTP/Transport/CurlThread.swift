#if LIBCURL
  import CCurl
  package import DownpipeCore
  import DownpipePOSIX
  import Foundation
  package import Synchronization

  /// A thread with libcurl's transfers, and the calls by which other threads reach it.
  ///
  /// All of libcurl's handles belong to that thread: they are local to ``CurlLoop``. Others put a ``Command`` into the
  /// inbox and wake the thread, which answers through continuations.
  package final class CurlThread: Sendable {
    enum Command {
      /// Sends a request, and resumes with the head of its response.
      case start(Order, CheckedContinuation<ResponseHead, any Error>)
      /// Pushes the body, and resumes after its last byte.
      case read(Order.ID, Reader)
      /// Reads and drops a short body, so that the connection can be used again, and resumes when it has or has given up.
      case drain(Order.ID, CheckedContinuation<Void, Never>)
      /// Ends a response that is not read.
      case discard(Order.ID)
      /// Ends the response in any phase; the waiting call throws the error.
      case cancel(Order.ID, any Error)
      /// Ends all requests and then the thread.
      case stop(CheckedContinuation<Void, Never>?)
    }

    /// What takes a body. An object, because each chunk looks it up: a copy of four references would cost a count each.
    final class Reader: Sendable {
      let sink: ChunkSink
      let pace: TransferPace
      /// The most bytes of the body; unlimited when `nil`.
      let limit: Int64?
      let continuation: CheckedContinuation<Body.End, any Error>

      init(
        sink: @escaping ChunkSink, pace: TransferPace, limit: Int64?,
        continuation: CheckedContinuation<Body.End, any Error>
      ) {
        self.sink = sink
        self.pace = pace
        self.limit = limit
        self.continuation = continuation
      }
    }

    private struct Inbox {
      var commands: [Command] = []
      var isClosed = false
      /// Whether the thread will look into the inbox before it waits.
      var isAwake = true
    }

    private let inbox = Mutex(Inbox())
    /// The address of the multi handle, which only serves to wake the thread; 0 while there is none. A lock of its own:
    /// the thread that is being woken needs the inbox at once.
    private let multi = Mutex<UInt>(0)
    /// Whether commands wait, for a thread that has been busy for long.
    private let isCalled = Atomic(false)
    private let wakeSignal = DispatchSemaphore(value: 0)
    /// The connections that a cancellation shuts down, because the thread may be waiting for one.
    let sockets = OpenSockets()
    /// The number of requests, for the choice of a thread.
    package let load = Atomic<Int>(0)

    /// - Throws: ``DownloadError`` if the thread cannot be started.
    package init(_ name: String, _ settings: CurlSettings) throws(DownloadError) {
      try SystemThread.start(name) { CurlLoop(self, settings).run() }
    }

    /// Ends all requests and the thread, and returns when it has ended. A second call has no effect.
    package func stop() async {
      await withCheckedContinuation { continuation in
        if !send(.stop(continuation)) { continuation.resume() }
      }
    }

    /// Ends all requests and the thread, without waiting.
    package func abandon() { send(.stop(nil)) }

    /// Puts a command into the inbox.
    /// - Returns: `false` after the end of the thread: the command was not taken.
    @discardableResult func send(_ command: Command) -> Bool {
      let (isTaken, mustWake) = inbox.withLock { inbox in
        if inbox.isClosed { return (false, false) }
        inbox.commands.append(command)
        isCalled.store(true, ordering: .relaxed)
        defer { inbox.isAwake = true }
        return (true, !inbox.isAwake)
      }
      if mustWake { wake() }
      // After the command: one that finds nothing to cut is in the inbox before the thread goes on.
      switch command {
      case .cancel(let id, let reason): sockets.cut(id, reason)
      case .stop: sockets.cutAll(DownloadError(.shutDown, "the downloader was shut down"))
      case .start, .read, .drain, .discard: break
      }
      return isTaken
    }

    /// Whether the thread has ended, or ends now.
    var isClosed: Bool { inbox.withLock(\.isClosed) }

    private func wake() {
      // Under the lock, because the thread may end and destroy the handle. Without a handle, or with another one than
      // that which the thread waited for, it is awake; to wake it once more does no harm.
      multi.withLock { multi in
        if let handle = UnsafeMutableRawPointer(bitPattern: multi) {
          curl_multi_wakeup(handle)
        } else {
          wakeSignal.signal()
        }
      }
    }

    // MARK: For the thread of the thread

    var hasCommands: Bool { isCalled.load(ordering: .relaxed) }

    /// Waits for commands without a handle.
    func waitForCommands() -> [Command] {
      while true {
        let commands = inbox.withLock { inbox in
          defer { inbox.commands = [] }
          inbox.isAwake = !inbox.commands.isEmpty
          return inbox.commands
        }
        if !commands.isEmpty { return commands }
        wakeSignal.wait()
      }
    }

    /// Sets the handle by which the thread is woken.
    func setHandle(_ handle: UnsafeMutableRawPointer) { multi.withLock { $0 = UInt(bitPattern: handle) } }

    /// Takes all commands. Later ones do not wake the handle before ``mayWait()``.
    /// - Parameter commands: An empty array, whose memory is used for the next commands.
    func takeCommands(into commands: inout [Command]) {
      inbox.withLock { inbox in
        isCalled.store(false, ordering: .relaxed)
        inbox.isAwake = true
        swap(&commands, &inbox.commands)
      }
    }

    /// Whether no command has come meanwhile. The next one wakes the handle then.
    func mayWait() -> Bool {
      inbox.withLock { inbox in
        inbox.isAwake = !inbox.commands.isEmpty
        return !inbox.isAwake
      }
    }

    /// No thread wakes the handle any more: it may be destroyed.
    func forgetHandle() {
      inbox.withLock { $0.isAwake = true }
      multi.withLock { $0 = 0 }
    }

    /// Takes the last commands; later ones are refused.
    func close() -> [Command] {
      inbox.withLock { inbox in
        inbox.isClosed = true
        defer { inbox.commands = [] }
        return inbox.commands
      }
    }
  }
#endif
