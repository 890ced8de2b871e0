@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Faults of the machine: a download that finds one goes back unharmed, and the downloader pauses.
@Suite(.endsHangs)
struct MachineFaultTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private let fault = DownloadError(.permission, "the folder cannot be written", scope: .machine)

  private func request(_ number: Int, host: String = "example.org") -> DownloadRequest {
    DownloadRequest(URL(string: "https://\(host)/\(number)")!, id: DownloadID("\(number)"))
  }

  private func downloader(_ source: FakeSource, _ observer: RecordingObserver = RecordingObserver()) async throws
    -> Downloader
  {
    try await Downloader(options: options) {
      source
      storage
      observer
      AnyLedger(ledger)
      Retry(.exponential(attempts: 2))
    }
  }

  @Test("downloads wait with the reason, no attempt counts, and one of them tries until the machine is mended")
  func pauses() async throws {
    storage.fail(.openPartial, times: 8, with: fault)
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    // More failures than there are attempts.
    let downloads = try await downloader.add(contentsOf: (0..<6).map { request($0) })
    for pause in [5, 10, 20] {
      await time.sleeper(dueIn: .seconds(pause))
      try await settle(downloader)
      for download in downloads {
        let status = try await download.status
        // The same for all: nothing of the download that has found it.
        let text = "this machine pauses: the folder cannot be written"
        #expect(status.state == .waiting(.machine(code: .permission, text: text)))
        #expect(status.attempts == 0)
        #expect(status.error == nil)
      }
      #expect(downloader.machineFault?.message == fault.message)
      time.advance(by: .seconds(pause))
    }
    try await advancing { for download in downloads { _ = try await download.value } }
    #expect(downloader.machineFault == nil)
    #expect(try await downloader.counts()[.finished] == 6)
    await downloader.shutdown(waitingAtMost: nil)
  }

  @Test(
    "the fault of the way to three hosts in a row is the machine's; with two of them it is theirs",
    arguments: [true, false])
  func hosts(oneIsReached: Bool) async throws {
    let broken = DownloadError(.network, "the proxy refused the connection", scope: .host)
    let requests = (0..<4).map { request($0, host: "host\($0).example") }
    var scripts = Dictionary(uniqueKeysWithValues: requests.map { ($0.url, [FakeSource.Script.failingToOpen(broken)]) })
    scripts[requests[3].url] = [.init(bytes)]
    let downloader = try await Downloader(options: options) {
      FakeSource(scripts)
      storage
      AnyLedger(ledger)
      Retry(.exponential(attempts: 2), table: .standard.with(.code(.network), .giveUp, because: "this is a test"))
    }
    for request in requests[..<2] {
      let download = try await downloader.add(request)
      await #expect(throws: DownloadError.self) { try await download.value }
    }
    #expect(downloader.machineFault == nil)
    if oneIsReached { _ = try await downloader.add(requests[3]).value }
    let third = try await downloader.add(requests[2])
    if oneIsReached {
      await #expect(throws: DownloadError.self) { try await third.value }
      #expect(downloader.machineFault == nil)
    } else {
      await time.sleeper(dueIn: .seconds(5))
      try await settle(downloader)
      #expect(try await third.status.attempts == 0)
      #expect(downloader.machineFault?.scope == .machine)
    }
    await downloader.shutdown(waitingAtMost: nil)
  }
}
