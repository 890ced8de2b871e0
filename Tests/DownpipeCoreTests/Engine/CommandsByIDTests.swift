import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Commands for many downloads by id, and the commands of a handle.
@Suite(.endsHangs)
struct CommandsByIDTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func phases(_ downloader: Downloader) async throws -> [DownloadState.Phase] {
    try await downloader.statuses(DownloadQuery()).map(\.state.phase)
  }

  @Test("Each command for many downloads changes those with the ids, and no others")
  func bulk() async throws {
    let count = 2_500
    let requests = requests(count)
    let source = FakeSource(Dictionary(uniqueKeysWithValues: requests.map { ($0.url, [.init(bytes)]) }))
    let downloader = try await downloader(source)
    await downloader.setSuspended(true)
    try await downloader.add(contentsOf: requests)
    let even = stride(from: 0, to: count, by: 2).map { DownloadID("d\($0)") } + ["unknown"]
    #expect(try await downloader.pauseAll(ids: even) == 1_250)
    #expect(try await downloader.counts() == [.paused: 1_250, .waiting: 1_250])
    #expect(try await downloader.resumeAll(ids: even.prefix(250)) == 250)
    #expect(try await downloader.cancelAll(ids: even.prefix(100)) == 100)
    #expect(try await downloader.restartAll(ids: Set(even.prefix(50))) == 50)
    #expect(try await downloader.updateAll(ids: ["d1", "d3"]) { $0.priority = .high } == 2)
    let changed = try await downloader.statuses(of: ["d1", "d2", "d3"]).values.filter { $0.request.priority == .high }
    #expect(Set(changed.map(\.id)) == ["d1", "d3"])
    #expect(try await downloader.removeAll(ids: even) == 1_250)
    #expect(try await downloader.removeAll(ids: []) == 0)
    #expect(try await downloader.counts() == [.waiting: 1_250])
    await downloader.shutdown()
  }

  @Test("A handle renames, restarts and discards its download")
  func handle() async throws {
    let source = FakeSource([url: [.init(bytes), .init(bytes)]])
    let downloader = try await downloader(source)
    await downloader.setSuspended(true)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(try await download.rename(to: "b.bin").name == "b.bin")
    #expect(try await download.discard())
    #expect(try await download.status.state == .cancelled)
    #expect(try await download.restart())
    await downloader.setSuspended(false)
    #expect(try await advancing { try await download.value }.name == "b.bin")
    await downloader.shutdown()
  }

  @Test(
    "A state reads as a person would say it",
    arguments: [
      (DownloadState.waiting(.turn), "waiting for its turn"),
      (.waiting(.limit(id: "Limits", text: "3 of 3 downloads are running")), "waiting: 3 of 3 downloads are running"),
      (.waiting(.gate(id: "WiFiOnly", text: "WiFiOnly: no Wi-Fi")), "waiting: WiFiOnly: no Wi-Fi"),
      (.waiting(.machine(code: .noSpace, text: "this machine pauses: full")), "waiting: this machine pauses: full"),
      (.waiting(.preempted(by: "a")), "waiting: preempted by “a”, which was started by hand"),
      (.waiting(.suspended), "waiting: all downloads are suspended"),
      (.waiting(.dependency("a", .paused)), "waits for “a”, which is paused"),
      (.transferring, "downloading"),
      (.processing(step: "Gunzip"), "processing: Gunzip"),
      (.paused, "paused"),
      (.finished(Artifact(kind: .file, location: .path("/d/film.mkv"), name: "film.mkv")), "finished: film.mkv"),
      (.failed(DownloadError(.noSpace, "the disk is full")), "failed: the disk is full"),
      (.cancelled, "cancelled"),
    ])
  func states(state: DownloadState, text: String) {
    #expect("\(state)" == text)
  }
}
