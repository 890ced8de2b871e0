import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Settings of steps among the metadata, which change while their downloads run.
@Suite(.endsHangs)
struct StepSettingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(
    _ source: FakeSource, with step: FakePostProcessor<File, File>
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      storage
      ledger
      step
    }
  }

  @Test(
    "a new setting of a step reaches the running download, other metadata does not disturb it",
    arguments: [true, false])
  func settingsOfSteps(isSetting: Bool) async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let key = isSetting ? DownloadRequest.stepSettingPrefix + "key" : "title"
    let seen = Watched<[String?]>([])
    let step = FakePostProcessor<File, File>(name: "Setting") { file, context in
      seen.update { $0.append(context.request.metadata[key]) }
      return file
    }
    let downloader = try await downloader(source, with: step)
    var request = DownloadRequest(url, id: "a").with(\.metadata, [key: "old"])
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    request.metadata[key] = "new"
    try await downloader.add(request)
    source.release()
    _ = try await download.value
    #expect(seen.value == ["new"])
    #expect(source.requests.count == (isSetting ? 2 : 1))
    #expect(try await download.status.request.metadata[key] == "new")
    await downloader.shutdown()
  }

  @Test("a new setting of a step stops the step that has begun with the old one")
  func settingsOfABegunStep() async throws {
    let key = DownloadRequest.stepSettingPrefix + "key"
    let seen = Watched<[String?]>([])
    let step = FakePostProcessor<File, File>(name: "Setting") { file, context in
      let setting = context.request.metadata[key]
      seen.update { $0.append(setting) }
      // Ends when its run is stopped.
      if setting == "old" { for await _ in AsyncStream<Never>(Never.self, { _ in }) {} }
      return file
    }
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), with: step)
    var request = DownloadRequest(url, id: "a").with(\.metadata, [key: "old"])
    let download = try await downloader.add(request)
    await step.calls(atLeast: 1)
    request.metadata[key] = "new"
    try await downloader.add(request)
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(seen.value == ["old", "new"])
    await downloader.shutdown()
  }
}
