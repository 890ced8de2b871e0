import Downpipe
import DownpipeTesting
import Foundation

/// The scenes of the demonstration.
struct Demonstration {
  let root: String
  let server: FileServer
  // They stand for `Online` and `Interfaces(deny: .cellular)`, which let transfers from this machine pass.
  let network = ManualGate("Network")
  let cellular = ManualGate("Cellular")
  var files: LargeFiles

  init(_ root: String) async throws {
    self.root = root
    server = try await FileServer.start()
    files = try await LargeFiles(root, network: network, cellular: cellular)
  }

  func end() async {
    await files.close()
    await server.server.shutdown()
  }

  /// Adds three files; two at once.
  func add() async throws {
    print("Three files. The settings: \(try await text()).")
    for name in FileServer.names { try await files.add(server.url(name)) }
    try await reach(1_500_000, of: "a.img")
    try await tell()
  }

  /// Raises and lowers the number at once.
  func changeTheNumber() async throws {
    print("The user sets three at once …")
    try await files.set { $0.atOnce = 3 }
    try await reach(700_000, of: "c.img")
    try await tell()
    print("… and one at once. The running transfers that were added last wait.")
    try await files.set { $0.atOnce = 1 }
    for name in ["b.img", "c.img"] { try await files.wait(for: DownloadID(name)) { $0.state.phase == .waiting } }
    try await tell()
  }

  /// Moves to a mobile network, and allows it.
  func allowCellular() async throws {
    print("The phone leaves the Wi-Fi.")
    cellular.close("the default route is over pdp_ip0")
    try await files.wait(for: "a.img") { $0.state.phase == .waiting }
    try await tell()
    print("The user allows mobile networks, and two at once.")
    try await files.set {
      $0.allowsCellular = true
      $0.atOnce = 2
    }
    try await reach(3_500_000, of: "a.img")
    try await tell()
  }

  /// Closes and opens the network gate.
  func loseTheNetwork() async throws {
    print("The network is lost …")
    network.close("no connection")
    for name in ["a.img", "b.img"] { try await files.wait(for: DownloadID(name)) { $0.state.phase == .waiting } }
    try await tell()
    print("… and is back.")
    network.open()
    try await reach(4_200_000, of: "a.img")
    try await tell()
  }

  /// Kills a process that transfers the files, and opens them again.
  mutating func kill() async throws {
    await files.close()
    let program = Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
    let bytes = try await OtherProcess.run(program, root: root, file: "a.img") { $0 > 5_500_000 }
    print("Another process went on and was killed (SIGKILL) after \(bytes) bytes of a.img.")
    network.close("no connection")
    files = try await LargeFiles(root, network: network, cellular: cellular)
    print("Its transfers come back as waiting, and the settings were kept:\n  \(try await text()).")
    for name in FileServer.names {
      try await files.wait(for: DownloadID(name)) {
        if case .waiting(.gate(id: "Network", text: "Network: no connection")) = $0.state { true } else { false }
      }
    }
    try await tell()
    network.open()
  }

  /// Waits until all files are finished, and compares them.
  func finish() async throws {
    print("All files are finished.")
    try await files.downloader.waitUntilIdle()
    try await tell()
    for file in try await files.files() {
      let bytes = try Data(contentsOf: URL(filePath: file.artifact?.path ?? ""))
      let isRight = bytes.elementsEqual(FileServer.content(of: file.id.rawValue).allBytes)
      let from = file.resumedFrom == 0 ? "" : ", resumed at byte \(file.resumedFrom)"
      print("  \(file.id): \(isRight ? "byte-identical" : "WRONG")\(from)")
    }
  }

  private func reach(_ bytes: Int64, of id: DownloadID) async throws {
    try await files.wait(for: id) { $0.progress.received >= bytes && $0.state.phase == .transferring }
  }

  private func text() async throws -> String {
    let settings = try await files.settings
    return "\(settings.atOnce) at once, mobile networks \(settings.allowsCellular ? "allowed" : "not allowed")"
  }

  /// Prints the lines of all files.
  private func tell() async throws {
    for file in try await files.files() { print("  " + LargeFiles.line(file).replacing("\n", with: "\n  ")) }
    print()
  }
}
