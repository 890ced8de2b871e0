import Downpipe
import DownpipeTesting
import HangLimit
import Testing

@testable import ResumableLibrary

/// Slots, the waiting list, manual starts, progress.
@Suite(.endsHangs)
struct QueueTests {
  @Test("a limited number of transfers, and a waiting list")
  func slots() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      for name in ["a", "b", "c"] { try await library.add(films.film(name)) }
      await films.gate.arrivals(2)
      #expect(
        try await library.status(of: "c")?.state == .waiting(.limit(id: "Limits", text: "2 of 2 downloads are running"))
      )
      #expect(films.starts(of: "c").isEmpty)
      await library.setSlots(3)
      await films.gate.arrivals(3)
      #expect(films.starts(of: "c") == [nil])
      films.gate.open()
      try await library.downloader.waitUntilIdle()
      #expect(try await library.films([.finished]).count == 3)
    }
    await films.shutdown()
  }

  @Test("a manual start sends the oldest running film back to waiting")
  func startByHand() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      for name in ["a", "b", "c", "d"] { try await library.add(films.film(name)) }
      try await library.waitForHeldBytes(of: "a")
      try await library.waitForHeldBytes(of: "b")
      try await library.start("d")
      try await library.waitForHeldBytes(of: "d")
      let oldest = try #require(await library.status(of: "a"))
      #expect(oldest.state == .waiting(.limit(id: "Limits", text: "2 of 2 downloads are running")))
      #expect(oldest.progress.received == TestFilms.held)
      #expect(try await library.status(of: "b")?.state == .transferring)
      // Now b is the oldest running film, and then d, which was started manually itself.
      try await library.start("c")
      try await library.waitForHeldBytes(of: "c")
      #expect(try await library.status(of: "b")?.state.phase == .waiting)
      try await library.start("a")
      try await library.wait(for: "a") { $0.state.phase == .transferring }
      #expect(try await library.status(of: "d")?.state.phase == .waiting)
      #expect(try await library.status(of: "c")?.state.phase == .transferring)
      films.gate.open()
      try await library.downloader.waitUntilIdle()
      for name in ["a", "b", "c", "d"] {
        let status = try #require(await library.status(of: .init(name)))
        #expect(status.state.phase == .finished)
        #expect(try films.folder.read("films/\(name).mp4") == TestFilms.content(of: "/\(name)").allBytes)
      }
    }
    #expect(films.starts(of: "b") == [nil, TestFilms.goesOnAt])
    #expect(films.starts(of: "d") == [nil, TestFilms.goesOnAt])
    await films.shutdown()
  }

  @Test("a manual start of a paused film uses a free slot")
  func startOfPaused() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      for name in ["a", "b"] { try await library.add(films.film(name)) }
      try await library.waitForHeldBytes(of: "a")
      try await library.waitForHeldBytes(of: "b")
      try await library.pause("a")
      try await library.start("a")
      try await library.wait(for: "a") { $0.state.phase == .transferring }
      #expect(try await library.status(of: "b")?.state == .transferring)
      films.gate.open()
      try await library.downloader.waitUntilIdle()
    }
    #expect(films.starts(of: "b") == [nil])
    await films.shutdown()
  }

  #if SQLite
    @Test("a paused film is not started by the queue, not even after a restart")
    func paused() async throws {
      let films = try await TestFilms()
      films.gate.open()
      try await films.open(slots: 1) { library in
        try await library.add(films.film("a"))
        _ = try await library.finish("a")
      }
      let held = try await TestFilms()
      try await held.open(slots: 1) { library in
        try await library.add(held.film("b"))
        try await library.waitForHeldBytes(of: "b")
        try await library.pause("b")
        held.gate.open()
        try await library.add(held.film("c"))
        try await library.downloader.waitUntilIdle()
        #expect(try await library.status(of: "b")?.state == .paused)
      }
      try await held.open(slots: 1) { library in
        try await library.downloader.waitUntilIdle()
        #expect(try await library.status(of: "b")?.state == .paused)
      }
      #expect(held.starts(of: "b") == [nil])
      await held.shutdown()
      await films.shutdown()
    }
  #endif

  @Test("progress, and speed each second")
  func progress() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      let changes = library.changes(every: .milliseconds(1))
      try await library.add(films.film("a"))
      for await change in changes {
        guard let status = change.statuses.first(where: { $0.progress.received == TestFilms.held }) else { continue }
        #expect(status.progress.total == .known(TestFilms.size))
        #expect(Library.line(status).hasPrefix("a.mp4  292.9 KB of 976.5 KB  30%"))
        break
      }
      films.gate.open()
      _ = try await library.finish("a")
    }
    await films.shutdown()
  }

  @Test(
    "B, KB and MB",
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1_048_575, "1023.9 KB"), (1_048_576, "1.0 MB"),
      (1_610_612_736, "1536.0 MB"),
    ])
  func units(bytes: Int64, text: String) { #expect(Library.bytes.format(bytes) == text) }
}
