import ArgumentParser
@_spi(Ledger) import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

/// A ledger may name paths outside the folder. A command that lists them moves nothing there.
@Suite(.endsHangs)
struct ScopedStoreTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try folder.write([1, 2, 3], to: "out/film")
    try folder.write([1, 2, 3], to: "else/film")
    try FileManager.default.createDirectory(atPath: folder.path("out/.downpipe"), withIntermediateDirectories: true)
  }

  private func store(showsAll: Bool, scope: PathScope? = nil) -> ScopedStore {
    ScopedStore(
      base: FileStore(folder.path("out")), scope: scope ?? PathScope(directory: folder.path("out"), ledger: nil),
      showsAll: showsAll)
  }

  private func rename(_ path: String, in store: ScopedStore) async throws -> Artifact {
    let artifact = Artifact(location: .path(folder.path(path)), name: "film", size: .known(3))
    let request = try DownloadRequest("http://a/film", id: "a")
    return try await store.publish(
      artifact, of: nil, at: .init(name: "other"), in: ProcessingContext(request: request, workspace: nil))
  }

  @Test("A file outside is not renamed", arguments: [true, false])
  func outside(showsAll: Bool) async throws {
    let error = await #expect(throws: DownloadError.self) {
      try await rename("else/film", in: store(showsAll: showsAll))
    }
    #expect(error?.code == .unsafePath)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("else")) == ["film"])

    let moved = try await rename("out/film", in: store(showsAll: showsAll))
    #expect(moved.path == folder.path("out/other"))
    let allowed = try await rename("else/film", in: store(showsAll: showsAll, scope: .everywhere))
    #expect(allowed.path == folder.path("else/other"))
  }

  @Test("A held partial is published")
  func held() async throws {
    let store = store(showsAll: false)
    let partial = try await store.openPartial(PartialKey(id: "a", generation: 1), isNew: true)
    try partial.write([4, 5], at: 0)
    try partial.finish()
    let request = try DownloadRequest("http://a/film", id: "a")
    let published = try await store.publish(
      try partial.artifact(name: "new", mediaType: nil), of: partial, at: .init(name: "new"),
      in: ProcessingContext(request: request, workspace: nil))
    try partial.close()
    #expect(published.path == folder.path("out/new"))
    #expect(try folder.read("out/new") == [4, 5])
  }

  @Test("A command that adds for any folder is where the ledger says that a file was, and not where nothing says it")
  func anyFolder() async throws {
    var store = store(showsAll: false)
    let name = try store.location
    #expect(name != nil)
    #expect(await store.isLocated(at: nil))
    store.isForAnyFolder = true
    #expect(try store.location == nil)
    #expect(await store.isLocated(at: name))
    #expect(await !store.isLocated(at: "elsewhere"))
    #expect(await !store.isLocated(at: nil))
  }

  #if SQLite
    /// A ledger with a finished download whose file was moved outside the folder.
    private func makeLedger() async throws -> String {
      let server = try await ScriptedHTTPServer.start { .file(.bytes([7]), etag: "\"v1\"", for: $0) }
      let ledger = folder.path("out/.downpipe/ledger.sqlite")
      let downloader = try await Downloader(
        Pipeline(PipelineSettings(directory: folder.path("out"), ledger: .file(ledger))))
      var request = try DownloadRequest("\(server.url("/moved"))", id: "a")
      RequestSteps(folder: folder.path("else")).attach(to: &request)
      let path = try await downloader.add(request).value.path
      await downloader.shutdown()
      await server.shutdown()
      try #require(path == folder.path("else/moved"))
      return ledger
    }

    @Test("Listing shows a file outside, and renames it neither for the ledger nor for a caller")
    func listing() async throws {
      let ledger = try await makeLedger()
      let store = try await SQLiteLedger(ledger).open()
      _ = try await store.update("a", at: Date()) { $0.steps.note = "rename\u{1F}other\u{1F}" }
      #expect(try await store.unsettledMoves().map(\.id) == ["a"])
      try await store.close()

      let options = try LedgerOptions.parse(["-d", folder.path("out")])
      try await options.withDownloader { downloader in
        let status = try #require(try await downloader.status(of: "a"))
        #expect(status.artifact?.path == folder.path("else/moved"))
        let error = await #expect(throws: DownloadError.self) { try await downloader.rename("a", to: "other") }
        #expect(error?.code == .unsafePath)
      }
      let files = try FileManager.default.contentsOfDirectory(atPath: folder.path("else")).sorted()
      #expect(files == ["film", "moved"])
    }
  #endif
}
