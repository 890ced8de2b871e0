import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import AssetManager

/// The rows of FEATURES A about files and failures.
@Suite(.endsHangs)
struct FileTests {
  @Test("asset manager: a file that is there already is done at once")
  func existingFile() async throws {
    let test = try await TestAssets()
    try test.folder.write(Array("a font".utf8), to: "assets/fonts/Sans.ttf")
    try await test.open { assets in
      var font = test.asset("Sans.ttf")
      font.folder = "fonts"
      let received = Received()
      let file = try await assets.get(font, received.callback).value
      #expect(file.path == test.root + "/fonts/Sans.ttf")
      await received.wait(for: .finished)
      #expect(test.requested.isEmpty)
      _ = try await assets.get(test.asset("map")).value
      #expect(try await assets.get(test.asset("map")).status.state.phase == .finished)
      #expect(test.requested == ["map"])
    }
    #expect(try test.folder.read("assets/fonts/Sans.ttf") == Array("a font".utf8))
    #if SQLite
      // Also after a restart.
      try await test.open { assets in
        let status = try await assets.get(test.asset("map")).status
        #expect(status.state.phase == .finished)
      }
      #expect(test.requested == ["map"])
    #endif
    await test.shutdown()
  }

  @Test("asset manager: move into the named directory, made if it is missing")
  func directory() async throws {
    let test = try await TestAssets()
    try await test.open { assets in
      var theme = test.asset("theme")
      theme.movesTo = test.folder.path("shared/themes/dark")
      let file = try await assets.get(theme).value
      #expect(file.path == test.folder.path("shared/themes/dark/theme"))
      var level = test.asset("level")
      level.folder = "worlds/first"
      #expect(try await assets.get(level).value.path == test.root + "/worlds/first/level")
      // A moved file is there already, too.
      #expect(try await assets.get(theme).status.state.phase == .finished)
    }
    #expect(try test.folder.read("shared/themes/dark/theme") == TestAssets.content.allBytes)
    #expect(try test.folder.read("assets/worlds/first/level") == TestAssets.content.allBytes)
    #expect(test.requested == ["theme", "level"])
    await test.shutdown()
  }

  private static let timeOut = FakeSource.Script.failingToOpen(DownloadError(.timedOut, "no answer"))
  private static let file = FakeSource.Script([1, 2, 3])

  /// The replies of a server, and the number of requests until the asset is finished or has failed.
  private static let failures: [(String, [FakeSource.Script], requests: Int, ends: DownloadState.Phase)] = [
    ("time-outs", Array(repeating: timeOut, count: 40) + [file], 41, .finished),
    ("time-outs of the server", Array(repeating: .status(504), count: 12) + [file], 13, .finished),
    ("one error", [.status(500), file], 2, .finished),
    ("two errors", [.status(500), .status(500), file], 2, .failed),
    ("an error that others would not try again", [.status(404), file], 2, .finished),
    ("that error twice", [.status(404), .status(404), file], 2, .failed),
  ]

  @Test("asset manager: time-outs are always tried again, other errors once", arguments: failures)
  func retryRules(_ row: (name: String, scripts: [FakeSource.Script], requests: Int, ends: DownloadState.Phase))
    async throws
  {
    let folder = try TemporaryFolder()
    let url = try #require(URL(string: "https://example.org/asset"))
    let source = FakeSource([url: row.scripts])
    let time = VirtualTime()
    let assets = try await Assets(
      folder.path, wifi: ManualGate(), source: source, options: DownloaderOptions(time: time))
    let received = Received()
    let clock = Task {
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    try await assets.get(Asset(url: url, intent: .silent), received.callback)
    await received.wait(for: row.ends)
    #expect(source.requests.count == row.requests, "\(row.name)")
    clock.cancel()
    await clock.value
    await assets.close()
  }

  @Test("asset manager: retry rules are data")
  func table() {
    #expect(Assets.rules.description.contains("timedOut        resume            a slow network recovers"))
    #expect(Assets.rules.row(for: DownloadError(.tls, "")).key == .other)
  }
}
