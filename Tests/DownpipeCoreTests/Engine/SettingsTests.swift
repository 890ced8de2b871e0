@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Settings that users change: kept, and effective on what runs.
@Suite(.endsHangs)
struct SettingsTests: EngineSuite {
  struct Settings: Codable, Sendable, Equatable {
    var jobs = 2
    var allowsCellular = false
    var isOpen = true
  }

  private struct Jobs: AdmissionPolicy, Equatable {
    var count: Int
    func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
      running.total < count ? .admitted : .full("\(count) run")
    }
  }

  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let wifi = FakeGate(name: "WiFi")

  private func source() -> FakeSource { FakeSource(everyURL: .init(bytes).holding(after: 40_000)) }

  private func downloader(
    _ source: FakeSource, ledger: (any Ledger)? = nil, defaults: Settings = Settings()
  ) async throws -> Downloader {
    let (storage, wifi, ledger) = (storage, wifi, AnyLedger(ledger ?? self.ledger))
    return try await Downloader(settings: defaults, options: options) { settings in
      source
      storage
      ledger
      Jobs(count: settings.jobs)
      if !settings.allowsCellular { wifi }
    }
  }

  private func add(_ count: Int, to downloader: Downloader) async throws {
    try await downloader.add(contentsOf: (0..<count).map { DownloadRequest(url, id: "\($0)") })
  }

  private func running(_ downloader: Downloader) async throws -> Int {
    try await downloader.statuses(DownloadQuery(phases: [.transferring])).count
  }

  @Test("a raised limit starts more at once, and a lowered one sends the lowest ranked back to waiting")
  func theLimitChangesLive() async throws {
    let source = source()
    let downloader = try await downloader(source)
    try await add(5, to: downloader)
    await source.held(atLeast: 2)
    try await downloader.settings(Settings.self).update { $0.jobs = 4 }
    await source.held(atLeast: 4)
    try await downloader.settings(Settings.self).update { $0.jobs = 1 }
    for id in ["1", "2", "3"] {
      let download = try #require(try await downloader.download(DownloadID(id)))
      for await event in download.events { if case .state(.waiting) = event.kind { break } }
    }
    #expect(try await running(downloader) == 1)
    #expect(try await downloader.status(of: "0")?.state.phase == .transferring)
    await downloader.shutdown()
  }

  @Test("with excess .finishes, a lowered limit stops nothing and starts nothing until there is room")
  func excessFinishes() async throws {
    let source = source()
    let downloader = try await downloader(source)
    try await add(3, to: downloader)
    await source.held(atLeast: 2)
    try await downloader.settings(Settings.self).update(excess: .finishes) { $0.jobs = 1 }
    #expect(try await running(downloader) == 2)
    #expect(source.requests.count == 2)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(source.requests.map(\.url).count == 3)
    await downloader.shutdown()
  }

  @Test("a change of another setting stops no download that was started by hand beyond the limit")
  func otherSettingsEnforceNoLimit() async throws {
    let source = source()
    let downloader = try await downloader(source, defaults: Settings(jobs: 1))
    try await add(2, to: downloader)
    await source.held(atLeast: 1)
    #expect(try await downloader.start("1"))
    await source.held(atLeast: 2)
    try await downloader.settings(Settings.self).update { $0.allowsCellular = true }
    #expect(await !downloader.removeAdmissionPolicy(id: "none"))
    #expect(try await running(downloader) == 2)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test("two downloaders on one ledger change the same settings, and no change is lost")
  func settingsAreShared() async throws {
    let (first, second) = (try await downloader(source()), try await downloader(source()))
    try await first.settings(Settings.self).update { $0.jobs = 5 }
    let both = try await second.settings(Settings.self).update { $0.allowsCellular = true }
    #expect(both == Settings(jobs: 5, allowsCellular: true))
    await first.shutdown()
    await second.shutdown()
  }

  @Test func settingsOutliveARestart() async throws {
    var downloader = try await downloader(source())
    let changed = try await downloader.settings(Settings.self).update { $0.jobs = 7 }
    #expect(changed == Settings(jobs: 7))
    await downloader.shutdown()
    downloader = try await self.downloader(source())
    #expect(try downloader.settings(Settings.self).value == Settings(jobs: 7))
    await downloader.shutdown()
  }

  @Test("properties that a new version of the app has added get their default values")
  func newPropertiesHaveDefaults() async throws {
    let store = try await ledger.open()
    try await store.keep(settings: Data(#"{"jobs":9,"retired":true}"#.utf8))
    let downloader = try await downloader(source(), defaults: Settings(jobs: 1, allowsCellular: true))
    #expect(try downloader.settings(Settings.self).value == Settings(jobs: 9, allowsCellular: true))
    await downloader.shutdown()
  }

  @Test(arguments: [#"{"jobs":"many"}"#, "not JSON", "", "[]", "null"])
  func settingsThatCannotBeDecodedCountAsDefaults(text: String) async throws {
    let store = try await ledger.open()
    try await store.keep(settings: Data(text.utf8))
    let downloader = try await downloader(source())
    #expect(try downloader.settings(Settings.self).value == Settings())
    try await downloader.settings(Settings.self).update { $0.jobs = 3 }
    #expect(try await store.settings().map { try JSONDecoder().decode(Settings.self, from: $0) } == Settings(jobs: 3))
    await downloader.shutdown()
  }

  @Test("a gate that the settings leave out no longer holds, and holds again when they bring it back")
  func gatesComeAndGo() async throws {
    let source = source()
    wifi.close("cellular")
    let downloader = try await downloader(source)
    try await add(1, to: downloader)
    let download = try #require(try await downloader.download("0"))
    for await event in download.events where event.kind == .state(.waiting(.gate(id: "WiFi", text: "WiFi: cellular"))) {
      break
    }
    try await downloader.settings(Settings.self).update { $0.allowsCellular = true }
    await source.held(atLeast: 1)
    try await downloader.settings(Settings.self).update { $0.allowsCellular = false }
    for await event in download.events where event.kind == .state(.waiting(.gate(id: "WiFi", text: "WiFi: cellular"))) {
      break
    }
    #expect(try await running(downloader) == 0)
    await downloader.shutdown()
  }

  @Test func aChangeThatCannotBeKeptHasNoEffect() async throws {
    let faulty = FaultyLedger(ledger)
    let source = source()
    let downloader = try await downloader(source, ledger: faulty)
    try await add(3, to: downloader)
    await source.held(atLeast: 2)
    faulty.fail(.keepSettings, with: DownloadError(.ledger, "the disk is full"))
    await #expect(throws: DownloadError.self) {
      try await downloader.settings(Settings.self).update { $0.jobs = 3 }
    }
    struct Refusal: Error {}
    await #expect(throws: Refusal.self) {
      try await downloader.settings(Settings.self).update { _ in throw Refusal() }
    }
    #expect(try downloader.settings(Settings.self).value == Settings())
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func concurrentChangesAreAllKept() async throws {
    let downloader = try await downloader(source())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask { try await downloader.settings(Settings.self).update { $0.jobs += 1 } }
      }
      try await group.waitForAll()
    }
    #expect(try downloader.settings(Settings.self).value == Settings(jobs: 22))
    await downloader.shutdown()
  }

  @Test func aDownloaderWithoutSettingsSaysSo() async throws {
    let downloader = try await downloader(source(), gates: [])
    let error = #expect(throws: DownloadError.self) { try downloader.settings(Settings.self) }
    #expect(error?.code == .invalidRequest)
    await downloader.shutdown()
  }

  @Test func theLedgerMustNotDependOnTheSettings() async throws {
    let (storage, source) = (storage, source())
    struct Numbered: Ledger {
      let number: Int
      let base: MemoryLedger
      var id: String { "\(number)" }
      func open() async throws -> any LedgerStore { try await base.open() }
    }
    let ledger = ledger
    try await ledger.open().keep(settings: Data(#"{"jobs":9}"#.utf8))
    let error = await #expect(throws: DownloadError.self) {
      _ = try await Downloader(settings: Settings()) { settings in
        source
        storage
        Numbered(number: settings.jobs, base: ledger)
      }
    }
    #expect(error?.code == .invalidPipeline)
  }

  @Test("of two lists of stages, equal values and the same objects are left alone")
  func changesOfStages() {
    struct Equal: AdmissionPolicy, Equatable {
      var id: String
      var count = 1
      func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }
    }
    let gates = [FakeGate(name: "a"), FakeGate(name: "b")]
    let same = StageChanges<any Gate>(gates, gates)
    #expect(same.changed.isEmpty && same.removed.isEmpty)
    let other = StageChanges<any Gate>(gates, [FakeGate(name: "a")])
    #expect(other.changed.map(\.id) == ["a"])
    #expect(other.removed == ["b"])
    let policies = StageChanges<any AdmissionPolicy>(
      [Equal(id: "x"), Equal(id: "y")], [Equal(id: "x"), Equal(id: "y", count: 2), Equal(id: "z")])
    #expect(policies.changed.map(\.id) == ["y", "z"])
    #expect(policies.removed.isEmpty)
  }
}
