import DownpipeCore
import DownpipeGates
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct OnlineTests {
  private static let none = RouteTable()
  private static let some = RouteTable([Route(IPAddress(family: .v4, bits: 0), length: 0, interface: "eth0")])
  private static let closed = GateRule.Verdict.closed("Online: there is no default route")
  private static let closedUntold = GateRule.Verdict.closed(
    "Online: there is no default route (checked every 5 s, since the system does not report changes)")

  @Test func publishesAtOnceAndAfterEachChange() async {
    let routes = FakeRoutes(Self.none)
    let time = VirtualTime()
    let watch = GateWatch(Online(routes: routes, time: time))
    #expect(await watch.verdict() == Self.closed)
    routes.set(Self.some)
    routes.tell()
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.settlingTime)
    #expect(await watch.verdict() == .open)
    routes.set(Self.none)
    routes.tell()
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.settlingTime)
    #expect(await watch.verdict() == Self.closed)
  }

  @Test func unchangedRoutesAreNotPublished() async {
    let routes = FakeRoutes(Self.none)
    let time = VirtualTime()
    let watch = GateWatch(Online(routes: routes, time: time))
    #expect(await watch.verdict() == Self.closed)
    for _ in 0..<3 {
      routes.tell()
      await time.sleepers(atLeast: 1)
      time.advance(by: RouteWatch.settlingTime)
    }
    routes.set(Self.some)
    routes.tell()
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.settlingTime)
    #expect(await watch.verdict() == .open)
  }

  @Test func manyChangesCauseOneRead() async {
    let routes = FakeRoutes(Self.none)
    let time = VirtualTime()
    let watch = GateWatch(Online(routes: routes, time: time))
    #expect(await watch.verdict() == Self.closed)
    routes.tell()
    await time.sleepers(atLeast: 1)
    for _ in 0..<100 { routes.tell() }
    routes.set(Self.some)
    time.advance(by: RouteWatch.settlingTime)
    #expect(await watch.verdict() == .open)
    // One read at the start and one now; the hundred changes cause one more.
    #expect(routes.reads == 2)
    await time.sleepers(atLeast: 1)
    #expect(routes.reads == 2)
  }

  @Test func readsPeriodicallyWithoutNotifications() async {
    let routes = FakeRoutes(Self.none, tells: false)
    let time = VirtualTime()
    let watch = GateWatch(Online(routes: routes, time: time))
    #expect(await watch.verdict() == Self.closedUntold)
    await time.sleepers(atLeast: 1)
    #expect(time.pendingSleeps == [RouteWatch.interval])
    routes.set(Self.some)
    time.advance(by: RouteWatch.interval)
    #expect(await watch.verdict() == .open)
  }

  @Test func readsPeriodicallyWhenNotificationsStop() async {
    let routes = FakeRoutes(Self.none)
    let time = VirtualTime()
    let watch = GateWatch(Online(routes: routes, time: time))
    #expect(await watch.verdict() == Self.closed)
    routes.stopTelling()
    #expect(await watch.verdict() == Self.closedUntold)
    routes.set(Self.some)
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.interval)
    #expect(await watch.verdict() == .open)
  }

  @Test func isOpenWhileRoutesCannotBeRead() async {
    let routes = FakeRoutes(Self.none)
    let time = VirtualTime()
    let watch = GateWatch(Online(routes: routes, time: time))
    #expect(await watch.verdict() == Self.closed)
    routes.fail()
    routes.tell()
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.settlingTime)
    #expect(await watch.verdict() == .open)
    // It reads again without a notification.
    routes.set(Self.none)
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.interval)
    #expect(await watch.verdict() == Self.closed)
  }

  @Test func failsWhenRoutesCannotBeReadAtTheStart() async {
    let routes = FakeRoutes(Self.none)
    routes.fail()
    let watch = GateWatch(Online(routes: routes, time: VirtualTime()))
    let end = await watch.end()
    #expect(throws: DownloadError.self) { try end.get() }
    #expect(await watch.next() == nil)
  }

  @Test(arguments: [true, false])
  func cancellingEndsTheWatch(tells: Bool) async {
    let watch = GateWatch(Online(routes: FakeRoutes(Self.some, tells: tells), time: VirtualTime()))
    #expect(await watch.verdict() == .open)
    let end = await watch.cancel()
    #expect(throws: CancellationError.self) { try end.get() }
  }

  @Test func namesCanBeSetToNeedNoDefaultRoute() async {
    let local = RouteTable([Route(IPAddress(family: .v4, bits: 0x0A00_0000), length: 8, interface: "eth0")])
    let strict = Online(routes: FakeRoutes(local), time: VirtualTime())
    #expect(strict.summary == "")
    #expect(await GateWatch(strict).verdict() == Self.closed)
    let lenient = Online(namesNeedDefaultRoute: false, routes: FakeRoutes(local), time: VirtualTime())
    #expect(lenient.summary == "names need no default route")
    #expect(await GateWatch(lenient).verdict() == .open)
  }

  @Test func loopbackIsOpenOnAnyMachine() async {
    let watch = GateWatch(Online())
    #expect(await watch.verdict("127.0.0.1:8080") == .open)
  }

  @Test(arguments: [none, some])
  func conforms(table: RouteTable) async throws {
    try await GateConformance(Online(routes: FakeRoutes(table, tells: false), time: VirtualTime())).run()
  }

  @Test func conformsOnThisMachine() async throws {
    try await GateConformance(Online()).run()
  }
}
