#if os(Linux)
  import DownpipeCore
  import DownpipeGates
  import Foundation
  import Glibc
  import Synchronization
  import Testing

  @Suite(.timeLimit(.minutes(1)))
  struct LinuxRoutesTests {
    @Test func readsThisMachine() throws {
      let table = try LinuxRoutes().read()
      #expect(table.ownAddresses.contains(IPAddress(family: .v4, bits: 0x7F00_0001)))
      #expect(!table.downInterfaces.contains("lo"))
      #expect(try LinuxRoutes().read() == table)
    }

    @Test func reportsChangesUntilTheStreamEnds() async throws {
      let changes = try #require(LinuxRoutes().changes(), "rtnetlink is refused here")
      let task = Task { for await _ in changes {} }
      task.cancel()
      await task.value
    }

    @Test func readsFoldersWithTheSameLayout() throws {
      let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-routes-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let routes = LinuxRoutes(
        folder: folder.path(percentEncoded: false), interfaces: { Interfaces(down: ["eth9"]) }, events: { nil })
      #expect(throws: DownloadError.self) { try routes.read() }
      #expect(routes.changes() == nil)

      let line = "eth9\t00000000\t00000000\t0001\t0\t0\t0\t00000000\n"
      try Data(line.utf8).write(to: folder.appending(path: "route"))
      let table = try routes.read()
      #expect(table.routes.map(\.interface) == ["eth9"])
      #expect(table.obstacleToNames == "the default route is over eth9, which has no link")

      // A table over the size limit is truncated, so a missing route does not close the gate.
      let long = String(repeating: line, count: (5 << 20) / line.utf8.count)
      try Data(long.utf8).write(to: folder.appending(path: "route"))
      #expect(try routes.read().isTruncated)
    }
  }

  /// The gate with the tables of the kernel, in a new network namespace.
  @Suite(
    .timeLimit(.minutes(1)),
    .enabled(if: NetworkNamespace.isAvailable, "needs root, the `ip` command and virtual Ethernet devices"))
  struct NetworkNamespaceTests {
    @Test func followsTheKernel() async throws {
      let namespace = try NetworkNamespace()
      defer { namespace.leave() }
      let watch = GateWatch(Online(routes: namespace.routes, time: SystemTime()))
      #expect(await watch.verdict() == .closed("Online: there is no default route"))

      try namespace.ip("addr add 192.0.2.2/24 dev near")
      try namespace.ip("route add default via 192.0.2.1")
      try await expect(.open, "example.org", from: watch)
      try namespace.ip("route del default")
      try await expect(.closed("Online: there is no default route"), "example.org", from: watch)
      try namespace.ip("route add unreachable 203.0.113.0/24", "route add default via 192.0.2.1")
      try await expect(.closed("Online: the route to the address rejects packets"), "203.0.113.7", from: watch)
      // Routes stay when a cable is unplugged.
      try namespace.ip("link set far down")
      try await expect(
        .closed("Online: the default route is over near, which has no link"), "example.org", from: watch)
      try namespace.ip("link set far up")
      try await expect(.open, "example.org", from: watch)
      try namespace.ip("link set near down")
      try await expect(.closed("Online: there is no default route"), "example.org", from: watch)
    }

    @Test func followsIPv6() async throws {
      let namespace = try NetworkNamespace()
      defer { namespace.leave() }
      let watch = GateWatch(Online(routes: namespace.routes, time: SystemTime()))
      let host = "[2001:db8:9::1]:443"
      #expect(await watch.verdict(host) == .closed("Online: there is no route to the address"))
      try namespace.ip(
        "-6 addr add 2001:db8::2/64 dev near nodad", "-6 route add default via 2001:db8::1 dev near")
      try await expect(.open, host, from: watch)
      try namespace.ip("-6 route add blackhole 2001:db8:9::/48")
      try await expect(.closed("Online: the route to the address rejects packets"), host, from: watch)
    }

    /// Waits for a verdict and ignores others, of incomplete changes. The suite has a time limit.
    private func expect(_ wanted: GateRule.Verdict, _ host: String, from watch: GateWatch) async throws {
      while let verdict = await watch.verdict(host) {
        if verdict == wanted { return }
      }
      Issue.record("the watch ended before \(wanted)")
    }
  }

  /// A network namespace for one thread; the rest of the process is not in it.
  private final class NetworkNamespace: Sendable {
    static var isAvailable: Bool { geteuid() == 0 && (try? NetworkNamespace().leave()) != nil }

    private struct Refused: Error {
      let what: String
    }

    private final class Worker: Sendable {
      let jobs = Mutex<[@Sendable () -> Void]>([])
      let wake = DispatchSemaphore(value: 0)
      let isOver = Mutex(false)

      func run() {
        while true {
          wake.wait()
          if isOver.withLock(\.self) { return }
          let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
          job?()
        }
      }
    }

    private let worker = Worker()
    let routes: LinuxRoutes

    init() throws {
      let worker = worker
      Thread.detachNewThread { worker.run() }
      do {
        let folder = try Self.perform(on: worker) {
          guard Self.unshareNetwork() else { throw Refused(what: "unshare") }
          // The namespace belongs to this thread, while /proc/self is that of the first thread.
          return "/proc/" + (try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) + "/net"
        }
        routes = LinuxRoutes(
          folder: folder, interfaces: { try? Self.perform(on: worker) { Interfaces.read() } },
          events: { (try? Self.perform(on: worker) { RouteEvents.open() })?.map(RouteEvents.stream) })
        try ip("link set lo up", "link add near type veth peer name far", "link set near up", "link set far up")
      } catch {
        worker.isOver.withLock { $0 = true }
        worker.wake.signal()
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
      worker.isOver.withLock { $0 = true }
      worker.wake.signal()
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
      worker.jobs.withLock { jobs in
        jobs.append {
          let outcome = Result { try work() }
          result.withLock { $0 = outcome }
          done.signal()
        }
      }
      worker.wake.signal()
      done.wait()
      return try result.withLock { try $0?.get() ?? { throw Refused(what: "nothing") }() }
    }
  }
#endif
