import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Commands that arrive while the ledger is leasing downloads.
@Suite(.endsHangs)
struct CommandRaceTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  enum Command: String, CaseIterable {
    case pause, cancel, remove, pauseAll, cancelAll, removeAll, suspend

    func give(to downloader: Downloader) async throws {
      switch self {
      case .pause: try await downloader.pause("d0")
      case .cancel: try await downloader.cancel("d0")
      case .remove: try await downloader.remove("d0")
      case .pauseAll: try await downloader.pauseAll()
      case .cancelAll: try await downloader.cancelAll()
      case .removeAll: try await downloader.removeAll()
      case .suspend: await downloader.setSuspended(true)
      }
    }

    /// The phase of a download after the command; `nil` if it is removed.
    var state: DownloadState? {
      switch self {
      case .pause, .pauseAll: .paused
      case .cancel, .cancelAll: .cancelled
      case .remove, .removeAll: nil
      case .suspend: .waiting(.suspended)
      }
    }
  }

  /// A downloader whose ledger can be held, and whose server holds every reply after 10,000 bytes.
  private func heldDownloader() async throws -> (Downloader, FakeSource, FaultyLedger) {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    return (try await downloader(source, ledger: faulty), source, faulty)
  }

  @Test(
    "A rename that waits for a step does not hold up a command that stops the step",
    arguments: ["pause", "cancel", "remove"])
  func stopsBesideARename(command: String) async throws {
    let step = FakePostProcessor<File, File>(name: "Slow") { [time] file, _ in
      try await time.sleep(for: .seconds(1_000_000))
      return file
    }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      step
      storage
      ledger
    }
    try await downloader.add(contentsOf: requests(1))
    await step.calls(atLeast: 1)
    let rename = Task { try await downloader.rename("d0", to: "new") }
    try await settle(downloader)
    switch command {
    case "pause": #expect(try await downloader.pause("d0"))
    case "cancel": #expect(try await downloader.cancel("d0"))
    default: #expect(try await downloader.remove("d0"))
    }
    let result = await rename.result
    let status = try await downloader.status(of: "d0")
    switch command {
    case "pause": #expect(status?.state == .paused)
    case "cancel": #expect(status?.state == .cancelled)
    default:
      #expect(status == nil)
      #expect(throws: Never.self, "it came first") { try result.get() }
    }
    await downloader.shutdown()
  }

  /// A downloader with a run of “d0”, and an exchange that the ledger holds.
  private func downloaderInExchange() async throws -> (Downloader, FaultyLedger) {
    let (downloader, source, faulty) = try await heldDownloader()
    try await downloader.add(contentsOf: requests(1))
    await source.held(atLeast: 1)
    try await settle(downloader)
    let next = holdNextExchange(faulty)
    try await downloader.add(contentsOf: Array(requests(2)[1...]))
    await faulty.calls(of: .exchange, atLeast: next)
    return (downloader, faulty)
  }

  @Test("A command that waits for the outcome of a run comes before a later removal")
  func removalAfterResume() async throws {
    let (downloader, source, faulty) = try await heldDownloader()
    try await downloader.add(contentsOf: requests(1))
    await source.held(atLeast: 1)
    let failure = DownloadError(.ledger, "the connection to the database was lost")
    faulty.fail(.exchange, at: faulty.calls.count { $0 == .exchange } + 1, with: failure)
    source.release()
    // The outcome waits for the ledger, which rests until this second is over.
    await time.sleeper(dueIn: .seconds(1))
    let resumption = Task { try await downloader.resume("d0") }
    try await settle(downloader)
    let removal = Task { try await downloader.remove("d0") }
    try await settle(downloader)
    #expect(try await advancing { try await removal.value })
    #expect(try await resumption.value == false)
    #expect(try await downloader.status(of: "d0") == nil)
    await downloader.shutdown()
  }

  @Test("What is added while an earlier removal waits for the run is a new download")
  func additionAfterRemoval() async throws {
    let (downloader, faulty) = try await downloaderInExchange()
    let removal = Task { try await downloader.remove("d0") }
    try await settle(downloader)
    let addition = Task { try await downloader.add(requests(1)[0]) }
    try await settle(downloader)
    faulty.release()
    #expect(try await removal.value)
    #expect(try await addition.value.isNew)
    #expect(try await downloader.status(of: "d0") != nil)
    await downloader.shutdown()
  }

  /// A downloader with a run of “d0”, whose outcome the ledger will not save at first.
  private func downloaderBeforeAFailure() async throws -> (Downloader, FakeSource) {
    let (downloader, source, faulty) = try await heldDownloader()
    try await downloader.add(contentsOf: requests(1))
    await source.held(atLeast: 1)
    try await settle(downloader)
    let failure = DownloadError(.ledger, "the connection to the database was lost")
    faulty.fail(.exchange, at: faulty.calls.count { $0 == .exchange } + 1, with: failure)
    return (downloader, source)
  }

  /// Changes URL, destination and priority of “d0”, for which its run has to stop.
  private func moveElsewhere(_ downloader: Downloader) async throws -> DownloadStatus {
    try await downloader.update("d0") { request in
      request.url = URL(string: "fake://host/another")!
      request.destination = .init(name: "another")
      request.priority = .low
    }
  }

  @Test("A change of URL and destination stops a run once: the download is not leased again before the change")
  func changeOfURLAndDestination() async throws {
    let (downloader, source, _) = try await heldDownloader()
    try await downloader.add(contentsOf: requests(1))
    await source.held(atLeast: 1)
    let status = try await moveElsewhere(downloader)
    #expect(status.request.destination.name == "another")
    await source.requests(atLeast: 2)
    #expect(source.requests.count == 2)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.status(of: "d0")?.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test("A download is leased again if the caller of a change is cancelled that has stopped its run")
  func cancelledChange() async throws {
    let (downloader, source) = try await downloaderBeforeAFailure()
    let change = Task { try await moveElsewhere(downloader) }
    // The run was stopped; its outcome waits for the ledger, which rests until this second is over.
    await time.sleeper(dueIn: .seconds(1))
    change.cancel()
    await #expect(throws: CancellationError.self) { try await change.value }
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloader.status(of: "d0")?.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test("A change that waits for a run does not undo a later change of all downloads")
  func changeOfAllAfterAChange() async throws {
    let (downloader, source) = try await downloaderBeforeAFailure()
    let change = Task { try await moveElsewhere(downloader) }
    // The run was stopped; its outcome waits for the ledger, which rests until this second is over.
    await time.sleeper(dueIn: .seconds(1))
    let changeOfAll = Task { try await downloader.updateAll { $0.priority = .high } }
    try await settle(downloader)
    source.release()
    _ = try await advancing { try await change.value }
    #expect(try await changeOfAll.value == 1)
    #expect(try await downloader.status(of: "d0")?.request.priority == .high)
    await downloader.shutdown()
  }

  @Test("What a later restart has begun is not discarded by an earlier call")
  func restartAfterDiscard() async throws {
    let (downloader, faulty) = try await downloaderInExchange()
    let discarding = Task { try await downloader.discard("d0") }
    try await settle(downloader)
    let restart = Task { try await downloader.restart("d0") }
    try await settle(downloader)
    faulty.release()
    #expect(try await discarding.value)
    #expect(try await restart.value)
    try await settle(downloader)
    #expect(try await downloader.status(of: "d0")?.state.phase == .transferring)
    await downloader.shutdown()
  }

  @Test("A download that is added twice while it is leased is fetched from the later place")
  func additionsWhileLeasing() async throws {
    let (downloader, source, faulty) = try await heldDownloader()
    let next = try await holdNextExchange(faulty, of: downloader)
    var requests = requests(1)
    requests.append(requests[0])
    requests[1].url = URL(string: "https://later.example/file.bin")!
    let added = Task { [requests] in try await downloader.add(contentsOf: requests) }
    await faulty.calls(of: .exchange, atLeast: next)
    await faulty.calls(of: .add, atLeast: 1)
    try await settle(downloader)
    faulty.release()
    _ = try await added.value
    await source.held(atLeast: 1)
    try await settle(downloader)
    #expect(source.requests.map(\.url) == [requests[1].url])
    #expect(try await downloader.status(of: "d0")?.request.url == requests[1].url)
    await downloader.shutdown()
  }

  /// Holds the exchange that would lease the next added download.
  private func holdNextExchange(_ faulty: FaultyLedger, of downloader: Downloader) async throws -> Int {
    try await downloader.waitUntilIdle()
    try await settle(downloader)
    return holdNextExchange(faulty)
  }

  private func holdNextExchange(_ faulty: FaultyLedger) -> Int {
    let next = faulty.calls.count { $0 == .exchange } + 1
    faulty.hold(.exchange, at: next)
    return next
  }

  @Test("a command that arrives during the lease takes effect", arguments: Command.allCases, [false, true])
  func commandsHold(command: Command, isLate: Bool) async throws {
    let (downloader, source, faulty) = try await heldDownloader()
    let next = try await holdNextExchange(faulty, of: downloader)
    try await downloader.add(contentsOf: requests(1))
    await faulty.calls(of: .exchange, atLeast: next)
    let given = Task { try await command.give(to: downloader) }
    // At different times: the order of the command and the ledger's answer must not matter.
    if isLate { try await settle(downloader) }
    faulty.release()
    try await given.value
    #expect(source.readers == 0, "nothing runs after the command has returned")
    try await settle(downloader)
    #expect(try await downloader.status(of: "d0")?.state == command.state)
    #expect(source.readers == 0, "and nothing runs later")
    #expect(storage.openPartials == 0)
    if command != .suspend {
      try await downloader.waitUntilIdle()
      if command.state != .paused { #expect(storage.partials.isEmpty) }
    }
    await downloader.shutdown()
  }

  @Test("a command for all reaches downloads that are being leased, and others", arguments: Command.allCases)
  func commandsForAllHoldForThoseThatWait(command: Command) async throws {
    let (downloader, source, faulty) = try await heldDownloader()
    let next = try await holdNextExchange(faulty, of: downloader)
    try await downloader.add(contentsOf: requests(20))
    await faulty.calls(of: .exchange, atLeast: next)
    let given = Task { try await command.give(to: downloader) }
    try await settle(downloader)
    faulty.release()
    try await given.value
    if command == .pause || command == .cancel || command == .remove {
      await source.held(atLeast: 5)
      #expect(try await downloader.status(of: "d0")?.state == command.state)
    } else {
      try await settle(downloader)
      #expect(source.readers == 0)
      #expect(source.requests.count <= 5)
      let statuses = try await downloader.statuses()
      #expect(statuses.count == (command.state == nil ? 0 : 20))
      #expect(statuses.allSatisfy { $0.state == command.state })
    }
    await downloader.shutdown()
    #expect(storage.openPartials == 0)
  }

  @Test func aSmallerLimitIsEnforcedOnWhatIsBeingLeased() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await Downloader(options: options) {
      source
      limit(5)
      storage
      faulty
    }
    let next = try await holdNextExchange(faulty, of: downloader)
    try await downloader.add(contentsOf: requests(5))
    await faulty.calls(of: .exchange, atLeast: next)
    let replaced = Task { await downloader.replace(limit(2)) }
    try await settle(downloader)
    faulty.release()
    await replaced.value
    var isSettled = false
    while !isSettled {
      let states = try await downloader.statuses().map(\.state)
      isSettled =
        states.count { $0 == .transferring } == 2
        && states.count { $0 == .waiting(.limit(id: "FakeAdmissionPolicy", text: "2 of 2")) } == 3
      await Task.yield()
    }
    await source.held(atLeast: 2)
    #expect(source.readers == 2)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 5])
    await downloader.shutdown()
  }

  @Test func aGateThatClosesMeanwhileHolds() async throws {
    let faulty = FaultyLedger(ledger)
    let gate = FakeGate()
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, gates: [gate], ledger: faulty)
    await gate.watchers(atLeast: 1)
    let next = try await holdNextExchange(faulty, of: downloader)
    try await downloader.add(contentsOf: requests(1))
    await faulty.calls(of: .exchange, atLeast: next)
    gate.close("night")
    try await settle(downloader)
    faulty.release()
    while try await downloader.status(of: "d0")?.state != .waiting(.gate(id: "FakeGate", text: "FakeGate: night")) {
      await Task.yield()
    }
    #expect(source.readers == 0)
    gate.open()
    await source.held(atLeast: 1)
    source.release()
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
  }

  @Test func whatIsAddedMeanwhileRunsNext() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source, ledger: faulty)
    let next = try await holdNextExchange(faulty, of: downloader)
    try await downloader.add(contentsOf: requests(1))
    await faulty.calls(of: .exchange, atLeast: next)
    let adding = Task { try await downloader.add(contentsOf: requests(3)) }
    try await settle(downloader)
    faulty.release()
    _ = try await adding.value
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 3])
    #expect(source.requests.count == 3)
    await downloader.shutdown()
  }

  @Test func shuttingDownMeanwhileLeavesNothingLeased() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let first = try await downloader(source, ledger: faulty)
    let next = try await holdNextExchange(faulty, of: first)
    try await first.add(contentsOf: requests(3))
    await faulty.calls(of: .exchange, atLeast: next)
    let shutdown = Task { await first.shutdown() }
    faulty.release()
    _ = await shutdown.value
    #expect(source.readers == 0 && storage.openPartials == 0)
    source.release()
    let second = try await downloader(source)
    try await second.waitUntilIdle()
    #expect(try await second.counts() == [.finished: 3])
    await second.shutdown()
  }
}
