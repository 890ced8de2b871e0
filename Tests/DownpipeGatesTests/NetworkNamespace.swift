#if os(Linux)
  import DownpipeCore
  import DownpipeGates
  import Foundation
  import Glibc
  import Synchronization
  import Testing

  /// A network namespace for one thread; the rest of the process is not in it.
  final class NetworkNamespace: Sendable {
    /// Whether these tests run. Without the rights they fail, so that a skipped test is not taken for a passed one;
    /// `DOWNPIPE_NO_ROOT=1` skips them.
    static let isExpected = ProcessInfo.processInfo.environment["DOWNPIPE_NO_ROOT"] != "1"
    /// The comment of a skipped test in the report.
    static let absence: Comment = "needs root, and DOWNPIPE_NO_ROOT=1 says that there is none"

    private struct Refused: Error, CustomStringConvertible {
      let what: String
      var description: String {
        "“\(what)” was refused; this test needs Linux, root, the `ip` command and virtual Ethernet devices, or "
          + "DOWNPIPE_NO_ROOT=1 to be left out"
      }
    }

    private final class Worker: Sendable {
      private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isOver = false
      }

      private let state = Mutex(State())
      private let wake = DispatchSemaphore(value: 0)

      /// Returns false when the thread has ended or will end: a watch can outlive its namespace for a moment.
      func add(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isAdded = state.withLock { state in
          if !state.isOver { state.jobs.append(job) }
          return !state.isOver
        }
        if isAdded { wake.signal() }
        return isAdded
      }

      /// Ends the thread after the jobs that were added.
      func end() {
        state.withLock { $0.isOver = true }
        wake.signal()
      }

      func run() {
        while true {
          wake.wait()
          let (job, isOver) = state.withLock { state in
            (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isOver)
          }
          job?()
          if job == nil, isOver { return }
        }
      }
    }

    private let worker = Worker()
    let routes: LinuxRoutes

    /// Creates a namespace with a cable from `near` to `far`.
    ///
    /// - Parameter sysfs: a folder with the layout of `/sys/class/net`; the one of the system shows the interfaces of
    ///   another namespace.
    init(sysfs: String = "/nonexistent") throws {
      let worker = worker
      Thread.detachNewThread { worker.run() }
      do {
        let folder = try Self.perform(on: worker) {
          guard Self.unshareNetwork() else { throw Refused(what: "unshare") }
          // The namespace belongs to this thread, while /proc/self is that of the first thread.
          return "/proc/" + (try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) + "/net"
        }
        routes = LinuxRoutes(
          folder: folder, sysfs: sysfs, interfaces: { try? Self.perform(on: worker) { InterfaceStates.read() } },
          events: { (try? Self.perform(on: worker) { RouteEvents.open() })?.map(RouteEvents.stream) })
        try ip("link set lo up", "link add near type veth peer name far", "link set near up", "link set far up")
      } catch {
        worker.end()
        throw error
      }
    }

    /// Moves the calling thread into a new network namespace. unshare(2) is a GNU extension that Swift's module of the
    /// C library does not contain.
    private static func unshareNetwork() -> Bool {
      typealias Unshare = @convention(c) (Int32) -> Int32
      guard let symbol = dlsym(nil, "unshare") else { return false }
      let unshare = unsafeBitCast(symbol, to: Unshare.self)
      return unshare(0x4000_0000 /* CLONE_NEWNET */) == 0
    }

    /// Ends the thread, and with it the namespace.
    func leave() {
      worker.end()
    }

    /// Runs `ip` with each line of arguments in the namespace: a child process inherits it from the calling thread.
    func ip(_ lines: String...) throws {
      for line in lines {
        try Self.perform(on: worker) {
          guard try Self.run(["ip"] + line.split(separator: " ").map(String.init)) == 0 else {
            throw Refused(what: "ip \(line)")
          }
        }
      }
    }

    /// Runs a program and waits for its end. Foundation's `Process.waitUntilExit` would hang in this thread.
    private static func run(_ words: [String]) throws -> Int32 {
      var arguments = words.map { strdup($0) } + [nil]
      defer { for argument in arguments { free(argument) } }
      var child: pid_t = 0
      guard posix_spawnp(&child, words[0], nil, nil, &arguments, environ) == 0 else { throw Refused(what: words[0]) }
      var status: Int32 = 0
      while waitpid(child, &status, 0) < 0 {
        guard errno == EINTR else { throw Refused(what: "waitpid") }
      }
      return status
    }

    private static func perform<Value: Sendable>(
      on worker: Worker, _ work: @escaping @Sendable () throws -> Value
    ) throws -> Value {
      let done = DispatchSemaphore(value: 0)
      let result = Mutex<Result<Value, any Error>?>(nil)
      let isAdded = worker.add {
        let outcome = Result { try work() }
        result.withLock { $0 = outcome }
        done.signal()
      }
      guard isAdded else { throw Refused(what: "the namespace after its end") }
      done.wait()
      return try result.withLock { try $0?.get() ?? { throw Refused(what: "nothing") }() }
    }
  }
#endif
