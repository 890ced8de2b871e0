import Downpipe
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import MediaLibrary

/// The rows of LYF about sessions, commands for all items, failures and timing.
@Suite(.endsHangs)
struct SessionTests {
  @Test("LYF: stop everything at log-out keeping resume state, go on at log-in")
  func logOut() async throws {
    let test = try await TestMedia()
    try await test.open { library in
      try await library.add(test.item("a"))
      try await library.add(test.item("b", of: "bert"))
      try await library.waitForHeldBytes(of: "a")
      library.logOut("anna")
      let waits = DownloadState.waiting(.gate(id: "SessionGate", text: "SessionGate: user:anna is logged out"))
      let stopped = try await library.wait(for: "a") { $0.state == waits }
      #expect(stopped?.progress.received == TestMedia.held)
      #expect(try await library.running() == nil)
      // Another user's session does not touch it.
      library.logIn("bert")
      try await library.waitForHeldBytes(of: "b")
      #expect(try await library.items().first?.state == waits)
      test.gate.open()
      library.logIn("anna")
      #expect(try await library.wait(for: "a") { _ in false }?.bytesFetched == TestMedia.size + 65_536)
    }
    #expect(test.starts(of: "a") == [nil, TestMedia.goesOnAt])
    await test.shutdown()
  }

  #if SQLite
    @Test("LYF: after a restart items wait for the log-in, and then go on")
    func restart() async throws {
      let test = try await TestMedia()
      try await test.open { library in
        try await library.add(test.item("a"))
        try await library.waitForHeldBytes(of: "a")
      }
      try await test.open(user: nil) { library in
        let waits = DownloadState.waiting(.gate(id: "SessionGate", text: "SessionGate: user:anna is logged out"))
        #expect(try await library.wait(for: "a") { $0.state == waits }?.progress.received == TestMedia.held)
        library.logIn("anna")
        _ = try await library.downloader.download("a")?.value
      }
      #expect(test.starts(of: "a") == [nil, TestMedia.goesOnAt])
      await test.shutdown()
    }
  #endif

  @Test("LYF: start all (the earliest first, the rest wait), pause all, delete all")
  func all() async throws {
    let test = try await TestMedia()
    try await test.open { library in
      for key in ["c", "a", "b"] { try await library.add(test.item(key)) }
      try await library.waitForHeldBytes(of: "c")
      try await library.pauseAll()
      #expect(try await library.counts() == [.paused: 3])
      #expect(try await library.items().first?.progress.received == TestMedia.held)
      // Not in the order of the keys, and the latest was touched last.
      try await library.downloader.update("b") { $0.priority = .high }
      try await library.startAll()
      try await library.wait(for: "c") { $0.state.phase == .transferring || $0.state.phase.isFinal }
      for key in ["a", "b"] {
        let state = try #require(try await library.downloader.status(of: DownloadID(key))).state
        #expect(state.phase != .paused)
      }
      test.gate.open()
      try await library.downloader.waitUntilIdle()
      #expect(test.server.requests.map(\.path) == ["/c", "/c", "/a", "/b"])
      #expect(test.starts(of: "c") == [nil, TestMedia.goesOnAt])
      #expect(try FileManager.default.subpathsOfDirectory(atPath: test.root).contains { $0.hasSuffix(".mp4") })
      try await library.deleteAll()
      #expect(try await library.items().isEmpty)
    }
    #expect(try !FileManager.default.subpathsOfDirectory(atPath: test.root).contains { $0.hasSuffix(".mp4") })
    await test.shutdown()
  }

  @Test("LYF: commands for all can select the items of a user")
  func allOfAUser() async throws {
    let test = try await TestMedia()
    try await test.open { library in
      for (key, user) in [("a", "anna"), ("b", "bert"), ("c", "anna")] {
        try await library.add(test.item(key, of: user))
      }
      func phases() async throws -> [DownloadState.Phase] { try await library.items().map(\.state.phase) }
      try await library.waitForHeldBytes(of: "a")
      try await library.pauseAll(.user("anna"))
      #expect(try await phases() == [.paused, .waiting, .paused])
      try await library.deleteAll(.user("bert"))
      #expect(try await library.items().map(\.id) == ["a", "c"])
      test.gate.open()
      try await library.startAll(.user("anna"))
      try await library.downloader.waitUntilIdle()
      #expect(try await phases() == [.finished, .finished])
    }
    await test.shutdown()
  }

  @Test("LYF: up to 3 attempts to recover, then a failure notice")
  func notice() async throws {
    let test = try await TestMedia()
    let time = VirtualTime()
    try await test.open(options: DownloaderOptions(time: time)) { library in
      var item = test.item("broken")
      item.info = ["title": "Faust"]
      try await library.add(item)
      for number in 1...2 {
        try await test.server.until { $0.requestCount == number }
        await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
        #expect(test.notices.value.isEmpty)
        time.advance(by: .seconds(1))
      }
      await test.notices.wait { $0.count == 1 }
      #expect(test.notices.value.first?.hasPrefix("broken (Faust): ") == true)
      #expect(try await library.items().first?.state.phase == .failed)
      #expect(test.server.activity.requestCount == 3)
    }
    await test.shutdown()
  }

  private struct Battery: PowerSource {
    let state = Watched(PowerState(isOnMains: false, charge: 71))
    func read() async throws -> PowerState { state.value }
  }

  @Test("LYF: system-chosen timing (discretionary)")
  func discretionary() async throws {
    let test = try await TestMedia()
    test.gate.open()
    // Noon on the first day.
    let (battery, time) = (Battery(), VirtualTime(date: Date(timeIntervalSince1970: 43_200)))
    let night = TimeWindow(from: .init(hour: 23), to: .init(hour: 6), in: .gmt, time: time)
    try await test.open(timing: PowerGate(source: battery, time: time).or(night)) { library in
      var later = test.item("later")
      later.isDiscretionary = true
      let download = try await library.add(later)
      _ = try await library.add(test.item("now")).value
      let reason = try await library.wait(for: "later") { $0.state.phase == .waiting }.map { "\($0.state)" } ?? ""
      #expect(reason.contains("PowerGate: the machine runs on its battery, at 71 %; or TimeWindow: opens at 23:00"))
      #expect(test.starts(of: "later").isEmpty)
      battery.state.update { $0.isOnMains = true }
      time.advance(by: PowerGate.interval)
      _ = try await download.value
      // And at night without mains power.
      battery.state.update { $0.isOnMains = false }
      time.advance(by: PowerGate.interval)
      later.key = "night"
      later.url = test.server.url("/night")
      let atNight = try await library.add(later)
      try await library.wait(for: "night") { $0.state.phase == .waiting && "\($0.state)".contains("PowerGate") }
      time.advance(by: .seconds(12 * 3600))
      _ = try await atNight.value
    }
    await test.shutdown()
  }

  @Test("LYF: by default, discretionary items wait for mains power or the night")
  func timing() async throws {
    let folder = try TemporaryFolder()
    let library = try await MediaLibrary(folder.path)
    let gates = await library.downloader.pipeline.gates
    #expect(gates.map(\.name) == ["SessionGate", "PowerGate or TimeWindow"])
    #expect(gates.last?.summary == "PowerGate: mains power; TimeWindow: 23:00–06:00, unless userInitiated")
    await library.close()
  }
}
