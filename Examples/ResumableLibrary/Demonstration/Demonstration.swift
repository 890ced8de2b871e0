import Downpipe
import DownpipeTesting
import Foundation

/// What can happen to a library, one thing after the other.
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

  /// Three films and two slots.
  func add() async throws {
    print("Three films, two at once; the server breaks off the second.")
    for name in ["metropolis", "nosferatu", "sunrise"] { try await library.add(server.film(name)) }
    try await reach(1_200_000, of: "metropolis")
    try await tell()
  }

  /// Pausing frees the slot.
  func pause() async throws {
    print("Metropolis is paused: its slot is free, its bytes stay.")
    try await library.pause("metropolis")
    try await reach(500_000, of: "sunrise")
    try await tell()
  }

  /// Without network nothing is asked for and nothing is lost.
  func loseTheNetwork() async throws {
    print("The network goes …")
    network.close("there is none")
    try await library.wait(for: "sunrise") { $0.state.phase == .waiting }
    try await library.wait(for: "nosferatu") { $0.state.phase == .waiting }
    try await tell()
    print("… and comes back.")
    network.open()
    try await reach(1_500_000, of: "sunrise")
    try await tell()
  }

  /// A manual start sends the oldest back to waiting.
  func startByHand() async throws {
    print("Metropolis is started by hand: the oldest of the others makes room.")
    try await library.start("metropolis")
    try await reach(2_500_000, of: "metropolis")
    try await tell()
  }

  /// Killed, and opened again.
  mutating func kill() async throws {
    await library.close()
    let program = Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
    let film = server.film("metropolis")
    let bytes = try await OtherProcess.run(program, OtherProcess.arguments(root: root, film: film)) { $0 > 3_000_000 }
    print("Another process has opened the library, and was killed (SIGKILL) when it had \(bytes) bytes of Metropolis.")
    library = try await Library(root, network: network)
    let status = try await library.wait(for: film.id) { $0.progress.received > 4_000_000 }
    print("Opened again, Metropolis went on at byte \(status?.resumedFrom ?? 0).")
    try await tell()
  }

  /// To the last byte.
  func finish() async throws {
    print("To the end.")
    try await library.downloader.waitUntilIdle()
    try await tell()
    for (name, content) in FilmServer.films.sorted(by: { $0.key < $1.key }) {
      guard let path = try await library.status(of: .init(name))?.artifact?.path else { continue }
      let isRight = try Data(contentsOf: URL(filePath: path)).elementsEqual(content.allBytes)
      print("  \(name.capitalized): \(isRight ? "byte-identical" : "WRONG")")
    }
    print()
  }

  /// What URLSession has begun is gone on with.
  func takeOver() async throws {
    print("URLSession has begun Caligari; its resume data is imported.")
    let begun = Array(FilmServer.films["caligari", default: .bytes([])].allBytes.prefix(1_000_000))
    let film = server.film("caligari")
    let file = URL(filePath: root).appending(path: "CFNetworkDownload_7.tmp")
    try Data(begun).write(to: file)
    let before = server.bytesSent
    let data = try AppleResumeSample.data(url: film.url, bytes: 1_000_000, tag: "caligari-1", file: file)
    try await library.add(film, resumeData: data, temporaryFiles: root)
    try await library.wait(for: film.id) { _ in false }
    try FileManager.default.removeItem(at: file)
    print("  500000 bytes were missing; the server sent \(server.bytesSent - before), its header fields included.")
    try await tell()
  }

  /// The file goes along with its name; deleting takes everything.
  func renameAndDelete() async throws {
    print("Sunrise gets another name, Nosferatu is deleted.")
    let before = server.bytesSent
    try await library.update("sunrise", name: "Sunrise (1927)", type: "m4v")
    try await library.wait(for: "sunrise") { _ in false }
    try await library.delete("nosferatu")
    try await tell()
    let files = try FileManager.default.contentsOfDirectory(atPath: root).filter { !$0.hasPrefix(".") }.sorted()
    print("  The folder: \(files.joined(separator: ", ")). Bytes fetched for that: \(server.bytesSent - before).")
  }

  // MARK: Helpers

  private func reach(_ bytes: Int64, of id: DownloadID) async throws {
    try await library.wait(for: id) { $0.progress.received >= bytes }
  }

  /// A line for each film.
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
