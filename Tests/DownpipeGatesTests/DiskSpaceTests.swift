import DownpipeCore
import DownpipeGates
import DownpipeTesting
import HangLimit
import Synchronization
import Testing

@Suite(.endsHangs)
struct DiskSpaceTests {
  private final class Disk: Sendable {
    private let state: Mutex<Int64?>
    init(_ free: Int64?) { state = Mutex(free) }
    func set(_ free: Int64?) { state.withLock { $0 = free } }
    func read() throws -> Int64 {
      guard let free = state.withLock(\.self) else { throw DownloadError(.storage, "unreadable") }
      return free
    }
  }

  private static let gibibyte: Int64 = 1 << 30

  private func gate(_ disk: Disk, _ time: VirtualTime, reserve: Int64 = gibibyte) -> DiskSpace {
    DiskSpace(reserve: reserve, at: "/srv/films", time: time) { _ in try disk.read() }
  }

  @Test func closesBelowTheReserveAndOpensAbove() async {
    let disk = Disk(Self.gibibyte)
    let time = VirtualTime()
    let watch = GateWatch(gate(disk, time))
    #expect(await watch.verdict() == .open)
    await time.sleeper(dueIn: .seconds(1))
    disk.set(Self.gibibyte - 1)
    time.advance(by: .seconds(1))
    #expect(
      await watch.verdict()
        == .closed("DiskSpace: 1.00 GiB are free at /srv/films, and 1.00 GiB are reserved"))
    // Not at once at the same limit: it would open and close all the time.
    await time.sleeper(dueIn: .seconds(5))
    disk.set(Self.gibibyte + (63 << 20))
    time.advance(by: .seconds(5))
    #expect(
      await watch.verdict()
        == .closed("DiskSpace: 1.06 GiB are free at /srv/films, and 1.00 GiB are reserved"))
    await time.sleeper(dueIn: .seconds(5))
    disk.set(Self.gibibyte + (64 << 20))
    time.advance(by: .seconds(5))
    #expect(await watch.verdict() == .open)
  }

  @Test func checksLessOftenWhenThereIsALot() async {
    let disk = Disk(100 * Self.gibibyte)
    let time = VirtualTime()
    let watch = GateWatch(gate(disk, time))
    #expect(await watch.verdict() == .open)
    await time.sleepers(atLeast: 1)
    #expect(time.pendingSleeps == [.seconds(10)])
    disk.set(0)
    time.advance(by: .seconds(10))
    #expect(
      await watch.verdict() == .closed("DiskSpace: 0 B are free at /srv/films, and 1.00 GiB are reserved"))
  }

  @Test func isOpenWhileTheSpaceCannotBeRead() async {
    let disk = Disk(0)
    let time = VirtualTime()
    let watch = GateWatch(gate(disk, time))
    #expect(await watch.verdict() != .open)
    disk.set(nil)
    await time.sleepers(atLeast: 1)
    time.advance(by: .seconds(5))
    #expect(await watch.verdict() == .open)
    let failing = GateWatch(gate(Disk(nil), time))
    let end = await failing.end()
    #expect(throws: DownloadError.self) { try end.get() }
  }

  @Test(arguments: [Int64.min, -1, 0, .max])
  func extremeReservesAreUsed(reserve: Int64) async {
    let verdict = await GateWatch(gate(Disk(0), VirtualTime(), reserve: reserve)).verdict()
    #expect((verdict == .open) == (reserve <= 0))
  }

  @Test func readsThisMachine() async throws {
    let folder = try TemporaryFolder()
    #expect(await GateWatch(DiskSpace(reserve: 1, at: folder.path("not/there/yet"))).verdict() == .open)
    let full = DiskSpace(reserve: .max, at: folder.path)
    guard case .closed(let reason) = await GateWatch(full).verdict() else {
      Issue.record("the disk has more than an exbibyte")
      return
    }
    #expect(reason.hasPrefix("DiskSpace: ") && reason.hasSuffix("at \(folder.path), and 1.00 EiB are reserved"))
  }

  @Test func conforms() async throws {
    let folder = try TemporaryFolder()
    try await GateConformance(DiskSpace(reserve: 1, at: folder.path)).run()
    let disk = Disk(0)
    let time = VirtualTime()
    try await GateConformance(gate(disk, time)) {
      await time.sleepers(atLeast: 1)
      disk.set(.max)
      time.advance(by: .seconds(5))
    }.run()
  }
}
