@_spi(Ledger) import Downpipe
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Testing

@testable import ResumableLibrary

/// Pauses, killed processes, lost networks.
@Suite(.endsHangs)
struct ResumingTests {
  @Test("foreground transfers", arguments: [true, false])
  func foreground(isURLSession: Bool) async throws {
    let films = try await TestFilms()
    films.gate.open()
    func run(_ library: Library) async throws {
      try await library.add(films.film("a"))
      #expect(try await library.finish("a")?.state.phase == .finished)
    }
    if isURLSession {
      try await films.open(source: URLSessionSource(.ephemeral), run)
    } else {
      try await films.open(run)
    }
    #expect(try films.folder.read("films/a.mp4") == TestFilms.content(of: "/a").allBytes)
    await films.shutdown()
  }

  #if !canImport(Darwin)
    @Test("background transfers throw an error on platforms other than Apple's")
    func background() async throws {
      let folder = try TemporaryFolder()
      await #expect {
        try await Library.inBackground(folder.path, session: "films")
      } throws: { error in
        (error as? DownloadError)?.code == .invalidPipeline
      }
    }
  #endif

  @Test("pausing frees the slot and keeps the bytes")
  func pause() async throws {
    let films = try await TestFilms()
    try await films.open(slots: 1) { library in
      try await library.add(films.film("a"))
      try await library.waitForHeldBytes(of: "a")
      try await library.add(films.film("b"))
      #expect(films.starts(of: "b").isEmpty)
      try await library.pause("a")
      try await library.waitForHeldBytes(of: "b")
      let paused = try #require(await library.status(of: "a"))
      #expect(paused.state == .paused)
      #expect(paused.progress.received == TestFilms.held)
      films.gate.open()
      _ = try await library.finish("b")
      try await library.resume("a")
      let status = try #require(await library.finish("a"))
      #expect(status.bytesFetched == TestFilms.size + TestFilms.compared)
    }
    #expect(films.starts(of: "a") == [nil, TestFilms.goesOnAt])
    #expect(try films.folder.read("films/a.mp4") == TestFilms.content(of: "/a").allBytes)
    await films.shutdown()
  }

  #if SQLite
    @Test("resume after the process was killed: at most the bytes of one checkpoint are transferred again")
    func kill() async throws {
      let films = try await TestFilms()
      let film = films.film("a")
      let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "ResumableLibrary")
      let ledger = SQLiteLedger("\(films.root)/.downpipe/ledger.sqlite")
      try await OtherProcess.run(program, OtherProcess.arguments(root: films.root, film: film)) { bytes in
        // The condition is checked a few times per second: the process is killed when its ledger has a checkpoint.
        guard bytes >= TestFilms.held else { return false }
        let store = try await ledger.open()
        let record = try await store.record(film.id)
        try await store.close()
        return record?.checkpoint.ranges.prefixLength == TestFilms.held
      }
      #expect(films.starts(of: "a") == [nil])
      try await films.open { library in
        let status = try await library.finish("a")
        #expect(status?.state.phase == .finished)
      }
      #expect(films.starts(of: "a") == [nil, TestFilms.goesOnAt])
      #expect(try films.folder.read("films/a.mp4") == TestFilms.content(of: "/a").allBytes)
      await films.shutdown()
    }
  #endif

  @Test("resume after the network was lost")
  func brokenConnection() async throws {
    // The connection ends at the position where the transfer is held.
    let films = try await TestFilms { request, reply in
      request.number == 1 ? ScriptedReply(reply.steps.dropLast() + [.close]) : reply
    }
    try await films.open { library in
      try await library.add(films.film("a"))
      try await library.waitForHeldBytes(of: "a")
      films.gate.open()
      let status = try #require(await library.finish("a"))
      #expect(status.state.phase == .finished)
      #expect(status.attempts == 2)
      #expect(status.bytesFetched == TestFilms.size + TestFilms.compared)
    }
    #expect(films.starts(of: "a") == [nil, TestFilms.goesOnAt])
    await films.shutdown()
  }

  @Test("bytes that the source received before the connection broke are not transferred again")
  func bytesOnTheirWay() async throws {
    let films = try await TestFilms { request, reply in
      request.number == 1 ? reply.truncated(after: 200_000) : reply
    }
    try await films.open { library in
      try await library.add(films.film("a"))
      let status = try #require(await library.finish("a"))
      #expect(status.state.phase == .finished)
    }
    // The bytes that had reached the source, which may be fewer than those that had reached the machine.
    let start = try #require(films.starts(of: "a").last ?? nil)
    #expect(start > 0 && start <= 200_000)
    await films.shutdown()
  }

  @Test("downloads start only while there is a network")
  func gate() async throws {
    let films = try await TestFilms()
    let network = ManualGate("Network", closed: "no connection")
    try await films.open(network: network) { library in
      try await library.add(films.film("a"))
      let waits = DownloadState.waiting(.gate(id: "Network", text: "Network: no connection"))
      let first = try await library.wait(for: "a") { _ in true }
      // Before its first rule a gate counts as closed, with another reason.
      guard case .waiting(.gate) = first?.state else { throw DownloadError(.invalidRequest, "\(first as Any)") }
      #expect(films.server.requests.isEmpty)
      network.open()
      try await library.waitForHeldBytes(of: "a")
      network.close("no connection")
      let status = try await library.wait(for: "a") { $0.state == waits }
      #expect(status?.progress.received == TestFilms.held)
      #expect(films.starts(of: "a") == [nil])
      // A manual start does not override the gate.
      try await library.start("a")
      #expect(try await library.status(of: "a")?.state == waits)
      #expect(films.starts(of: "a") == [nil])
      network.open()
      #expect(try await library.finish("a")?.state.phase == .finished)
    }
    #expect(films.starts(of: "a") == [nil, TestFilms.goesOnAt])
    await films.shutdown()
  }

  #if SQLite
    @Test("the folder may move between two starts, because only file names are stored")
    func movedFolder() async throws {
      let films = try await TestFilms()
      try await films.open { library in
        try await library.add(films.film("a"))
        try await library.waitForHeldBytes(of: "a")
        try await library.pause("a")
        films.gate.open()
        try await library.add(films.film("b"))
        _ = try await library.finish("b")
      }
      for name in try films.folder.contents() where name.contains("ledger") {
        let text = Data(try films.folder.read(name))
        #expect(text.range(of: Data(films.folder.path.utf8)) == nil, "\(name)")
      }
      let moved = films.folder.path("moved")
      try FileManager.default.moveItem(atPath: films.root, toPath: moved)
      try await films.open(at: moved) { library in
        #expect(try await library.status(of: "b")?.artifact?.path == moved + "/b.mp4")
        try await library.resume("a")
        #expect(try await library.finish("a")?.artifact?.path == moved + "/a.mp4")
      }
      #expect(films.starts(of: "a") == [nil, TestFilms.goesOnAt])
      #expect(films.starts(of: "b") == [nil])
      #expect(try films.folder.read("moved/a.mp4") == TestFilms.content(of: "/a").allBytes)
      await films.shutdown()
    }
  #endif
}
