@_spi(Ledger) import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import ResumableLibrary

/// Records, files and their names.
@Suite(.endsHangs)
struct DatabaseTests {
  @Test("add or update: a film with a new link resumes and is one transfer")
  func addOrUpdate() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      #expect(try await library.add(films.film("a")).isNew)
      try await library.waitForHeldBytes(of: "a")
      try await library.pause("a")
      var film = films.film("a")
      film.url = films.server.url("/a?fresh")
      #expect(try await !library.add(film).isNew)
      #expect(try await library.films() == [film])
      #expect(try await library.status(of: "a")?.state == .paused)
      try await library.resume("a")
      #expect(try await library.finish("a")?.bytesFetched == TestFilms.size + TestFilms.compared)
    }
    #expect(films.server.requests.map(\.target) == ["/a", "/a?fresh"])
    await films.shutdown()
  }

  @Test("delete stops the transfer and deletes record, partial and file")
  func delete() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      try await library.add(films.film("a"))
      try await library.waitForHeldBytes(of: "a")
      try await library.delete("a")
      #expect(try await library.status(of: "a") == nil)
      #expect(try await FileStore(films.root).partials()?.isEmpty == true)
      films.gate.open()
      try await library.add(films.film("b"))
      _ = try await library.finish("b")
      #expect(FileManager.default.fileExists(atPath: films.root + "/b.mp4"))
      try await library.delete("b")
      #expect(!FileManager.default.fileExists(atPath: films.root + "/b.mp4"))
      #expect(try await library.films().isEmpty)
    }
    await films.shutdown()
  }

  #if SQLite
    @Test("update of name and type renames the finished file without a transfer")
    func rename() async throws {
      let films = try await TestFilms()
      films.gate.open()
      try await films.open { library in
        try await library.add(films.film("a"))
        _ = try await library.finish("a")
        try await library.update("a", name: "Metropolis", type: "mkv")
        #expect(try await library.finish("a")?.artifact?.path == films.root + "/Metropolis.mkv")
      }
      try await films.open { library in
        let status = try #require(await library.status(of: "a"))
        #expect(status.artifact?.name == "Metropolis.mkv")
        #expect(Film(status.request).type == "mkv")
      }
      #expect(!FileManager.default.fileExists(atPath: films.root + "/a.mp4"))
      #expect(try films.folder.read("films/Metropolis.mkv") == TestFilms.content(of: "/a").allBytes)
      #expect(films.starts(of: "a") == [nil])
      await films.shutdown()
    }
  #endif

  @Test("update of name and type during a transfer: the file gets the new name")
  func renameUnderWay() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      try await library.add(films.film("a"))
      try await library.waitForHeldBytes(of: "a")
      try await library.update("a", name: "Metropolis", type: "mkv")
      films.gate.open()
      #expect(try await library.finish("a")?.artifact?.path == films.root + "/Metropolis.mkv")
    }
    #expect(films.starts(of: "a") == [nil])
    await films.shutdown()
  }

  #if SQLite
    @Test("a rename that a crash interrupted is completed at the next start", arguments: [false, true])
    func interruptedRename(fileIsMoved: Bool) async throws {
      let films = try await TestFilms()
      films.gate.open()
      try await films.open { library in
        try await library.add(films.film("a"))
        _ = try await library.finish("a")
      }
      // The state after a process was killed before or after the move: the note, and one of the two names.
      let store = try await SQLiteLedger(films.root + "/.downpipe/ledger.sqlite").open()
      let record = try #require(try await store.record("a"))
      let path = films.root + "/a.mp4"
      let context = ProcessingContext(request: record.request, workspace: nil) { note in
        _ = try await store.update("a", at: Date()) { $0.steps.note = "rename\u{1F}Metropolis.mkv\u{1F}\(note)" }
        if !fileIsMoved { throw CancellationError() }
      }
      let stored = try #require(record.steps.artifact)
      let artifact = Artifact(
        location: .path(path), name: "a.mp4", size: ByteCount(stored.size), modifiedAt: stored.modifiedAt)
      _ = try? await FileStore(films.root).publish(artifact, of: nil, at: .init(name: "Metropolis.mkv"), in: context)
      #expect(FileManager.default.fileExists(atPath: path) == !fileIsMoved)
      try await store.close()
      try await films.open { library in
        let status = try await library.finish("a")
        #expect(status?.artifact?.path == films.root + "/Metropolis.mkv")
      }
      #expect(films.starts(of: "a") == [nil])
      await films.shutdown()
    }
  #endif

  @Test("an existing name is kept; the other file gets a number")
  func takenName() async throws {
    let films = try await TestFilms()
    films.gate.open()
    try await films.open { library in
      for name in ["a", "b"] {
        try await library.add(films.film(name))
        _ = try await library.finish(.init(name))
      }
      try await library.update("a", name: "b", type: "mp4")
      let status = try #require(await library.status(of: "a"))
      #expect(status.artifact?.path == films.root + "/b (1).mp4")
      #expect(Film(status.request).name == "b (1)")
    }
    #expect(try films.folder.read("films/b.mp4") == TestFilms.content(of: "/b").allBytes)
    #expect(try films.folder.read("films/b (1).mp4") == TestFilms.content(of: "/a").allBytes)
    await films.shutdown()
  }

  @Test("query")
  func query() async throws {
    let films = try await TestFilms()
    try await films.open { library in
      for name in ["c", "a", "b"] { try await library.add(films.film(name)) }
      try await library.pause("a")
      #expect(try await library.films().map(\.id) == ["c", "a", "b"])
      #expect(try await library.films([.paused]) == [films.film("a")])
      #expect(try await library.films([.finished]).isEmpty)
    }
    await films.shutdown()
  }
}
