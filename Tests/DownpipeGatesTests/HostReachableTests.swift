import DownpipeCore
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@Suite(.endsHangs)
struct HostReachableTests {
  /// A host whose answers a test sets.
  private final class Host: Sendable {
    private struct State {
      var isThere = true
      var isSilent = false
      var checks = 0
    }

    private let state = Mutex(State())
    /// Holds silent checks.
    private let end = DispatchSemaphore(value: 0)

    func set(isThere: Bool) { state.withLock { $0.isThere = isThere } }
    func fallSilent() { state.withLock { $0.isSilent = true } }
    var checks: Int { state.withLock(\.checks) }

    func connect() throws {
      let now = state.withLock { state in
        state.checks += 1
        return state
      }
      // Blocks its thread, as a resolver does.
      if now.isSilent { end.wait() }
      if !now.isThere { throw DownloadError(.offline, "cannot be reached: Connection refused") }
    }

    func answer() { end.signal() }
  }

  private static let unchecked = GateRule.Verdict.closed("HostReachable: nas:443 has not been checked yet")
  private static let refused = GateRule.Verdict.closed(
    "HostReachable: nas:443 cannot be reached: Connection refused")

  private func gate(_ host: Host, _ time: VirtualTime) -> HostReachable {
    HostReachable("nas", port: 443, time: time) { _, _ in try host.connect() }
  }

  @Test func opensAfterTheFirstCheck() async {
    let time = VirtualTime()
    let watch = GateWatch(gate(Host(), time))
    #expect(await watch.verdict() == Self.unchecked)
    #expect(await watch.verdict() == .open)
    await time.sleeper(dueIn: HostReachable.interval.open)
  }

  @Test func closesAfterTwoFailedChecks() async {
    let (host, time) = (Host(), VirtualTime())
    let watch = GateWatch(gate(host, time))
    #expect(await watch.verdict() == Self.unchecked)
    #expect(await watch.verdict() == .open)
    // One failure does not close the gate.
    await time.sleeper(dueIn: HostReachable.interval.open)
    host.set(isThere: false)
    time.advance(by: HostReachable.interval.open)
    await time.sleeper(dueIn: HostReachable.interval.doubtful)
    host.set(isThere: true)
    time.advance(by: HostReachable.interval.doubtful)
    await time.sleeper(dueIn: HostReachable.interval.open)
    #expect(host.checks == 3)
    // Two failures do.
    host.set(isThere: false)
    time.advance(by: HostReachable.interval.open)
    await time.sleeper(dueIn: HostReachable.interval.doubtful)
    time.advance(by: HostReachable.interval.doubtful)
    #expect(await watch.verdict() == Self.refused)
    // It is checked again while it is closed.
    await time.sleeper(dueIn: HostReachable.interval.closed)
    host.set(isThere: true)
    time.advance(by: HostReachable.interval.closed)
    #expect(await watch.verdict() == .open)
  }

  @Test func aSilentHostIsGivenUp() async {
    let (host, time) = (Host(), VirtualTime())
    host.fallSilent()
    let watch = GateWatch(gate(host, time))
    #expect(await watch.verdict() == Self.unchecked)
    await time.sleeper(dueIn: HostReachable.timeLimit)
    time.advance(by: HostReachable.timeLimit)
    #expect(await watch.verdict() == .closed("HostReachable: nas:443 did not answer within 5 s"))
    // The thread is still busy: no other one starts.
    await time.sleeper(dueIn: HostReachable.interval.closed)
    time.advance(by: HostReachable.interval.closed)
    await time.sleeper(dueIn: HostReachable.interval.closed)
    // On a busy machine its thread may begin late.
    while host.checks == 0 { await Task.yield() }
    #expect(host.checks == 1)
    let end = await watch.cancel()
    #expect(throws: CancellationError.self) { try end.get() }
    host.answer()
  }

  @Test func connectsToRealHosts() async throws {
    let server = try await ScriptedHTTPServer.start { _ in .status(404) }
    let port = try #require(server.url("/").port.flatMap(UInt16.init(exactly:)))
    let open = GateWatch(HostReachable("127.0.0.1", port: port))
    #expect(
      await open.verdict() == .closed("HostReachable: 127.0.0.1:\(port) has not been checked yet"))
    #expect(await open.verdict() == .open)
    #expect(server.requests.isEmpty, "it sends nothing")
    await server.shutdown()
    let refused = GateWatch(HostReachable("127.0.0.1", port: port))
    _ = await refused.next()
    #expect(
      await refused.verdict()
        == .closed("HostReachable: 127.0.0.1:\(port) cannot be reached: Connection refused"))
    let unknown = GateWatch(HostReachable("downpipe.invalid", port: 443))
    _ = await unknown.next()
    guard case .closed(let reason) = await unknown.verdict() else {
      Issue.record("a name that does not exist is reachable")
      return
    }
    #expect(reason.hasPrefix("HostReachable: downpipe.invalid:443 "), "\(reason)")
    #expect(HostReachable("::1", port: 80).summary == "[::1]:80")
  }

  @Test func conforms() async throws {
    let (host, time) = (Host(), VirtualTime())
    host.set(isThere: false)
    try await GateConformance(gate(host, time)) {
      await time.sleeper(dueIn: HostReachable.interval.closed)
      host.set(isThere: true)
      time.advance(by: HostReachable.interval.closed)
    }.run()
    try await GateConformance(HostReachable("127.0.0.1", port: 9)).run()
  }
}
