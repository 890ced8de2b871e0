import Downpipe
import DownpipeTesting
import Foundation

/// The scenes of the demonstration.
struct Demonstration {
  let root: String
  let server: FilmServer
  let network = ManualGate("Network")
  var library: Library

  init(_ root: String) async throws {
    self.root = root
    server = try await FilmServer.start()
    library = try await Library(root, network: network)
  }

  func end() async {
    await library.close()
    await server.server.shutdown()
  }

  /// Adds three films; two slots.
  func add() async throws {
    print("Three films, two at a time. The server resets the connection of the second film.")
    for name in ["metropolis", "nosferatu", "sunrise"] { try await library.add(server.film(name)) }
    try await reach(1_200_000, of: "metropolis")
    try await tell()
  }

  /// Pauses a film, which frees its slot.
  func pause() async throws {
    print("Metropolis is paused: its slot is free and its bytes stay.")
    try await library.pause("metropolis")
    try await reach(500_000, of: "sunrise")
    try await tell()
  }

  /// Closes and opens the network gate.
  func loseTheNetwork() async throws {
    print("The network is lost …")
    network.close("no connection")
    try await library.wait(for: "sunrise") { $0.state.phase == .waiting }
    try await library.wait(for: "nosferatu") { $0.state.phase == .waiting }
    try await tell()
    print("… and is back.")
    network.open()
    try await reach(1_500_000, of: "sunrise")
    try await tell()
  }

  /// Starts a film manually, which sends the oldest running film back to waiting.
  func startByHand() async throws {
    print("Metropolis is started manually: the oldest running film goes back to waiting.")
    try await library.start("metropolis")
    try await reach(2_500_000, of: "metropolis")
    try await tell()
  }

  /// Kills a process that uses the library, and opens the library again.
  mutating func kill() async throws {
    await library.close()
    let program = Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
    let film = server.film("metropolis")
    let bytes = try await OtherProcess.run(program, OtherProcess.arguments(root: root, film: film)) { $0 > 3_000_000 }
    print("Another process opened the library and was killed (SIGKILL) after \(bytes) bytes of Metropolis.")
    library = try await Library(root, network: network)
    let status = try await library.wait(for: film.id) { $0.progress.received > 4_000_000 }
    print("The library is opened again. Metropolis resumed at byte \(status?.resumedFrom ?? 0).")
    try await tell()
  }

  /// Waits until all films are finished, and compares them.
  func finish() async throws {
    print("All films are finished.")
    try await library.downloader.waitUntilIdle()
    try await tell()
    for (name, content) in FilmServer.films.sorted(by: { $0.key < $1.key }) {
      guard let path = try await library.status(of: .init(name))?.artifact?.path else { continue }
      let isRight = try Data(contentsOf: URL(filePath: path)).elementsEqual(content.allBytes)
      print("  \(name.capitalized): \(isRight ? "byte-identical" : "WRONG")")
    }
    print()
  }

  /// Imports a partial download of URLSession.
  func takeOver() async throws {
    print("URLSession has downloaded a part of Caligari. Its resume data is imported.")
    let begun = Array(FilmServer.films["caligari", default: .bytes([])].allBytes.prefix(1_000_000))
    let film = server.film("caligari")
    let file = URL(filePath: root).appending(path: "CFNetworkDownload_7.tmp")
    try Data(begun).write(to: file)
    let before = server.bytesSent
    let data = try AppleResumeSample.data(url: film.url, bytes: 1_000_000, tag: "caligari-1", file: file)
    try await library.add(film, resumeData: data, temporaryFiles: root)
    try await library.wait(for: film.id) { _ in false }
    try FileManager.default.removeItem(at: file)
    print("  500000 bytes were missing; the server sent \(server.bytesSent - before) bytes, including header fields.")
    try await tell()
  }

  /// Renames and deletes films.
  func renameAndDelete() async throws {
    print("Sunrise is renamed, Nosferatu is deleted.")
    let before = server.bytesSent
    try await library.update("sunrise", name: "Sunrise (1927)", type: "m4v")
    try await library.wait(for: "sunrise") { _ in false }
    try await library.delete("nosferatu")
    try await tell()
    let files = try FileManager.default.contentsOfDirectory(atPath: root).filter { !$0.hasPrefix(".") }.sorted()
    print("  Files: \(files.joined(separator: ", ")). Bytes transferred for that: \(server.bytesSent - before).")
  }

  // MARK: Helpers

  private func reach(_ bytes: Int64, of id: DownloadID) async throws {
    try await library.wait(for: id) { $0.progress.received >= bytes }
  }

  /// Prints a line for each film.
  private func tell() async throws {
    for film in try await library.films() {
      guard let status = try await library.status(of: film.id) else { continue }
      var state = status.state.phase.rawValue
      if case .waiting(let reason) = status.state { state += " (\(reason))" }
      print("  \(Library.line(status))  \(state)")
    }
    print()
  }
}
