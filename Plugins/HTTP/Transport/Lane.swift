#if LIBCURL
  import CCurl
  import DownpipeCore
  import Foundation
  import Synchronization

  /// A thread with libcurl's transfers, and the calls by which other threads reach it.
  ///
  /// All of libcurl's handles belong to that thread: they are local to ``LaneLoop``. Others put a ``Command`` into the
  /// inbox and wake the thread, which answers through continuations.
  final class Lane: Sendable {
    enum Command {
      /// Sends a request, and resumes with the head of its response.
      case start(Order, CheckedContinuation<ResponseHead, any Error>)
      /// Pushes the body, and resumes after its last byte.
      case read(Order.ID, Reader)
      /// Reads and drops a short body, so that the connection can be used again, and resumes when it has or has given up.
      case drain(Order.ID, CheckedContinuation<Void, Never>)
      /// Ends a response that is not read.
      case discard(Order.ID)
      /// Ends the exchange in any phase; the waiting call throws the error.
      case cancel(Order.ID, any Error)
      /// Ends all exchanges and then the thread.
      case stop(CheckedContinuation<Void, Never>?)
    }

    /// Where a body goes.
    struct Reader: Sendable {
      var sink: ChunkSink
      var pace: TransferPace
      /// The most bytes of the body; unlimited when `nil`.
      var limit: Int64?
      var continuation: CheckedContinuation<Void, any Error>
    }

    private struct Inbox {
      var commands: [Command] = []
      var isClosed = false
      /// Whether the thread will look into the inbox before it waits.
      var isAwake = true
      /// The address of the multi handle, which only serves to wake the thread; 0 while there is none.
      var multi: UInt = 0
    }

    private let inbox = Mutex(Inbox())
    /// Whether commands wait, for a thread that has been busy for long.
    private let isCalled = Atomic(false)
    private let bell = DispatchSemaphore(value: 0)
    /// The number of exchanges, for the choice of a lane.
    let load = Atomic<Int>(0)

    init(_ name: String, configuration: HTTPSource.Configuration, jar: CookieJar?) {
      let thread = Thread { LaneLoop(self, configuration, jar).run() }
      thread.name = name
      thread.start()
    }

    /// Puts a command into the inbox.
    /// - Returns: `false` after the end of the thread: the command was not taken.
    @discardableResult func send(_ command: Command) -> Bool {
      inbox.withLock { inbox in
        if inbox.isClosed { return false }
        inbox.commands.append(command)
        isCalled.store(true, ordering: .relaxed)
        // Under the lock, because the thread may end and destroy the handle.
        if !inbox.isAwake {
          inbox.isAwake = true
          if let multi = UnsafeMutableRawPointer(bitPattern: inbox.multi) {
            curl_multi_wakeup(multi)
          } else {
            bell.signal()
          }
        }
        return true
      }
    }

    // MARK: For the thread of the lane

    var hasCommands: Bool { isCalled.load(ordering: .relaxed) }

    /// Waits for commands without a handle.
    func waitForCommands() -> [Command] {
      while true {
        let commands = inbox.withLock { inbox in
          defer { inbox.commands = [] }
          (inbox.multi, inbox.isAwake) = (0, !inbox.commands.isEmpty)
          return inbox.commands
        }
        if !commands.isEmpty { return commands }
        bell.wait()
      }
    }

    /// Takes all commands; without any, the next one wakes the handle.
    func takeCommands(_ multi: UnsafeMutableRawPointer) -> [Command] {
      inbox.withLock { inbox in
        inbox.multi = UInt(bitPattern: multi)
        isCalled.store(false, ordering: .relaxed)
        inbox.isAwake = !inbox.commands.isEmpty
        let commands = inbox.commands
        inbox.commands.removeAll(keepingCapacity: true)
        return commands
      }
    }

    /// No thread wakes the handle any more: it may be destroyed.
    func forgetHandle() { inbox.withLock { ($0.multi, $0.isAwake) = (0, true) } }

    /// Takes the last commands; later ones are refused.
    func close() -> [Command] {
      inbox.withLock { inbox in
        inbox.isClosed = true
        inbox.multi = 0
        defer { inbox.commands = [] }
        return inbox.commands
      }
    }
  }
#endif
