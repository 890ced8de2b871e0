import Downpipe
import DownpipeTesting
import Foundation

/// The scenes of the demonstration.
struct Demonstration {
  let root: String
  let server: MediaServer
  /// Stands for `PowerGate` and `TimeWindow`.
  let timing = ManualGate("Power", closed: "the phone runs on its battery")
  let library: MediaLibrary

  init(_ root: String) async throws {
    self.root = root
    server = try await MediaServer.start()
    library = try await MediaLibrary(root, timing: timing) { key, info, error in
      print("  Notice: \(info["title"] ?? key) has failed: \(error.message)")
    }
  }

  func end() async {
    await library.close()
    await server.server.shutdown()
  }

  func add() async throws {
    print("Three items of Anna and one of Bert. No user is logged in.")
    try await library.add(server.item("/1", "film-7", of: "anna", "Documents/Films"))
    try await library.add(server.item("/2", "film-9", of: "anna", "Documents/Films"))
    try await library.add(server.item("/3", "song-2", of: "anna", "Caches"))
    try await library.add(server.item("/4", "book-4", of: "bert", "Documents"))
    print("  contains film-9: \(try await library.contains("film-9")), film-8: \(try await library.contains("film-8"))")
    try await tell()
  }

  func logIn() async throws {
    print("Anna logs in. The earliest item runs; the app refreshes every half second.")
    library.logIn("anna")
    for await batch in library.downloader.changes(every: .milliseconds(500)) {
      print("  \(batch.statuses.count) changed")
      if batch.statuses.contains(where: { $0.progress.received > 700_000 }) { break }
    }
    print("  running: \(try await library.running()?.id.rawValue ?? "none")")
    try await tell()
  }

  func logOut() async throws {
    print("Anna logs out. The bytes stay.")
    library.logOut("anna")
    try await wait("film-7") { $0.state.phase == .waiting }
    try await tell()
    library.logIn("anna")
    let film = try await wait("film-7") { $0.state.phase.isFinal }
    print("Logged in again: \(film?.name ?? "") went on at byte \(film?.resumedFrom ?? 0) and is finished.\n")
  }

  func pauseAndStart() async throws {
    print("Pause all, then start all. The server has no song: it fails three times.")
    try await library.pauseAll()
    try await tell()
    try await library.startAll()
    try await wait("song-2") { $0.state.phase.isFinal }
    try await tell()
  }

  func otherUser() async throws {
    print("Bert logs in, with a new link for his book; the key is the same.")
    var book = server.item("/4", "book-4", of: "bert", "Documents")
    book.url = server.server.url("/4?session=c07a")
    try await library.add(book)
    library.logIn("bert")
    try await wait("book-4") { $0.state.phase.isFinal }
    print("  \(try await library.counts().map { "\($0.value) \($0.key.rawValue)" }.sorted().joined(separator: ", "))\n")
  }

  func discretionary() async throws {
    print("A discretionary item waits until the system has power to spare.")
    var film = server.item("/1", "film-8", of: "bert", "Caches")
    film.isDiscretionary = true
    try await library.add(film)
    try await wait("film-8") {
      if case .waiting(.gate(id: "Power", _)) = $0.state { true } else { false }
    }
    try await tell("film-8")
    timing.open()
    try await wait("film-8") { $0.state.phase.isFinal }
    try await tell("film-8")
  }

  func deleteAll() async throws {
    print("The server has named the files, in the wanted folders:")
    for file in try files() { print("  \(file)") }
    try await library.deleteAll()
    print("\nDelete all: \(try await library.items().count) items, \(try files().count) files.")
  }

  private func files() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: root).sorted().filter {
      !$0.hasPrefix(".") && $0.contains(/\.\w+$/)
    }
  }

  @discardableResult
  private func wait(_ key: String, until condition: (DownloadStatus) -> Bool) async throws -> DownloadStatus? {
    guard let item = try await library.downloader.download(DownloadID(key)) else { return nil }
    for await _ in item.events {
      let status = try await item.status
      if condition(status) { return status }
    }
    return try await item.status
  }

  /// Prints a line for each item, the earliest first.
  private func tell(_ key: String? = nil) async throws {
    for status in try await library.items() where key == nil || key == status.id.rawValue {
      let state =
        switch status.state {
        case .waiting(let reason): "waiting (\(reason))"
        case .failed(let error): "failed: \(error.message)"
        default: status.state.phase.rawValue
        }
      let bytes = status.artifact?.size ?? .known(status.progress.received)
      let columns = [
        (status.id.rawValue, 8), (status.request.metadata["title"] ?? "", 12), (bytes.formatted(), 10), (state, 0),
      ]
      print("  " + columns.map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }.joined())
    }
    print()
  }
}
