import Downpipe
import DownpipeTesting
import Foundation
import Synchronization

/// The scenes of the demonstration.
struct Demonstration {
  let root: String
  let server: AssetServer
  let assets: Assets
  /// Stands for `WiFiOnly`, which lets transfers from this machine pass.
  let wifi = ManualGate("Wi-Fi", closed: "the phone uses the mobile network")

  init(_ root: String) async throws {
    self.root = root
    server = try await AssetServer.start()
    assets = try await Assets(root, wifi: wifi.unless(.userInitiated))
  }

  func end() async {
    await assets.close()
    await server.server.shutdown()
  }

  func overTheMobileNetwork() async throws {
    print("Eight assets over the mobile network. Only the one that the user asked for runs.")
    for number in 1...3 { try await assets.get(server.asset("level-\(number).pak", .silent)) }
    for number in 4...6 { try await assets.get(server.asset("level-\(number).pak", .prefetch)) }
    try await assets.get(server.asset("level-7.pak", .silent), callback(1))
    _ = try await assets.get(server.asset("map.pak", .userInitiated)).value
    try await tell()
  }

  func tap() async throws {
    print("The user taps level 7: the same link again, with another intent and callback.")
    _ = try await assets.get(server.asset("level-7.pak", .userInitiated), callback(2)).value
    print()
  }

  func wifiIsBack() async throws {
    print("Wi-Fi is back: three at once, pre-downloads before silent ones.")
    wifi.open()
    for await batch in assets.downloader.changes() where batch.statuses.contains(where: { $0.progress.received > 0 }) {
      break
    }
    try await tell()
    try await assets.downloader.waitUntilIdle()
    print(
      "  Requested in this order: \(server.requested.dropFirst(2).map { $0.dropLast(4) }.joined(separator: ", "))\n")
  }

  func again() async throws {
    print("Level 1 again, and a file that came with the app: both are there.")
    let before = server.requested.count
    try FileManager.default.createDirectory(atPath: root + "/fonts", withIntermediateDirectories: true)
    try Data("a font".utf8).write(to: URL(filePath: root + "/fonts/Sans.ttf"))
    var font = server.asset("Sans.ttf", .prefetch)
    font.folder = "fonts"
    for asset in [server.asset("level-1.pak", .silent), font] {
      let file = try await assets.get(asset).value
      print("  \(file.name), \(file.size.formatted())")
    }
    print("  Requests for that: \(server.requested.count - before)\n")
  }

  func failures() async throws {
    print("Time-outs are always tried again, other errors once.")
    for name in ["slow.pak", "shaky.pak", "broken.pak"] {
      _ = try? await assets.get(server.asset(name, .userInitiated)).value
      let count = server.requested.count { $0 == name }
      let state = try await assets.downloader.status(of: server.asset(name, .silent).id)?.state
      let end = if case .failed(let error) = state { "failed: \(error.message)" } else { "finished" }
      print("  \(name): \(end) (requests: \(count))")
    }
    print()
  }

  func moves() async throws {
    print("A file is moved to a directory, which is made.")
    var asset = server.asset("theme.pak", .userInitiated)
    asset.movesTo = root + "/Shared/Themes"
    let file = try await assets.get(asset).value
    print("  …\(file.path?.dropFirst(root.count) ?? "")")
  }

  /// A callback that prints each new state.
  private func callback(_ number: Int) -> Assets.Callback {
    let last = Mutex("")
    return { event in
      guard case .state(let state) = event.kind else { return }
      let text = "  callback \(number): \(event.request.url.lastPathComponent) is \(Self.text(state))"
      let isNew = last.withLock { last in
        defer { last = text }
        return last != text
      }
      if isNew { print(text) }
    }
  }

  private static func text(_ state: DownloadState) -> String {
    switch state {
    case .waiting(.turn): "waiting"
    case .waiting(let reason): "waiting (\(reason))"
    default: state.phase.rawValue
    }
  }

  /// Prints a line for each asset, the next to start first.
  private func tell() async throws {
    for status in try await assets.downloader.statuses(DownloadQuery(order: .rank)) {
      let columns = [(status.name ?? status.request.url.lastPathComponent, 12), (status.request.intent.rawValue, 15)]
      let line = columns.map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined()
      print("  \(line)\(Self.text(status.state))")
    }
    print()
  }
}
