import Downpipe
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import LargeFiles

/// The settings, and changes of the network.
@Suite(.endsHangs)
struct SettingsTests {
  @Test("CX: number at once is the user's setting, kept, and takes effect on running transfers")
  func numberAtOnce() async throws {
    let test = try await TestFiles()
    try await test.open { files in
      #expect(try await files.settings == Settings(atOnce: 2, allowsCellular: false))
      for name in ["a", "b", "c"] { try await files.add(test.url(name)) }
      for id in ["a", "b"] as [DownloadID] { try await files.waitForHeldBytes(of: id) }
      _ = try await files.wait(for: "c", toBe: .waiting(.limit(id: "Limits", text: "2 of 2 downloads are running")))
      #expect(test.starts(of: "c").isEmpty)
      try await files.set { $0.atOnce = 3 }
      try await files.waitForHeldBytes(of: "c")
      try await files.set { $0.atOnce = 1 }
      for id in ["b", "c"] as [DownloadID] {
        let file = try await files.wait(
          for: id, toBe: .waiting(.limit(id: "Limits", text: "1 of 1 download is running")))
        #expect(file?.progress.received == TestFiles.held)
      }
      #expect(try await files.downloader.status(of: "a")?.state == .transferring)
      #expect(test.starts(of: "a") == [nil], "the first was not interrupted")
    }
    test.gate.open()
    #if SQLite
      try await test.open(network: ManualGate("Network", closed: "not yet")) { files in
        let kept = try await files.settings
        #expect(kept.atOnce == 1)
        #expect(await files.downloader.pipeline.admission.map(\.maximumConcurrent) == [1])
      }
    #endif
    await test.shutdown()
  }

  @Test("CX: a lower number at once can let running transfers end")
  func lowerNumberLater() async throws {
    let test = try await TestFiles()
    try await test.open { files in
      for name in ["a", "b", "c"] { try await files.add(test.url(name)) }
      for id in ["a", "b"] as [DownloadID] { try await files.waitForHeldBytes(of: id) }
      try await files.set(excess: .finishes) { $0.atOnce = 1 }
      _ = try await files.wait(for: "c", toBe: .waiting(.limit(id: "Limits", text: "2 of 1 download is running")))
      test.gate.open()
      try await files.downloader.waitUntilIdle()
    }
    for name in ["a", "b", "c"] { #expect(test.starts(of: name) == [nil]) }
    await test.shutdown()
  }

  @Test("CX: allow cellular is the user's setting, kept, and takes effect on running transfers")
  func allowCellular() async throws {
    let afar = try FilesFromAfar(.cellular)
    let gate = Interfaces(deny: .cellular, routes: afar.routes, time: afar.time)
    func open() async throws -> LargeFiles {
      try await LargeFiles(afar.folder.path, source: afar.source, network: ManualGate("Network"), cellular: gate)
    }
    var files = try await open()
    try await files.set { $0.allowsCellular = true }
    try await files.add(FilesFromAfar.url)
    await afar.source.held(atLeast: 1)
    // A running transfer stops …
    try await files.set { $0.allowsCellular = false }
    let waits = DownloadState.waiting(
      .gate(id: "Interfaces", text: "Interfaces: the default route is over if0, which is denied"))
    let film = try await files.wait(for: "film", toBe: waits)
    #expect(film?.progress.received == 200_000)
    #expect(afar.source.readers == 0)
    // … and goes on, with what was kept.
    try await files.set { $0.allowsCellular = true }
    try await files.downloader.waitUntilIdle()
    #expect(try await files.files().first?.resumedFrom == 200_000)
    await files.close()
    #if SQLite
      files = try await open()
      #expect(try await files.settings.allowsCellular)
      #expect(await files.downloader.pipeline.gates.map(\.id) == ["Network"])
      await files.close()
    #endif
  }

  @Test("CX: network changes are watched; transfers pause and go on")
  func network() async throws {
    let afar = try FilesFromAfar(.wifi)
    let files = try await LargeFiles(
      afar.folder.path, source: afar.source, network: Online(routes: afar.routes, time: afar.time),
      cellular: ManualGate("Cellular"))
    try await files.add(FilesFromAfar.url)
    await afar.source.held(atLeast: 1)
    await afar.move(to: nil)
    let film = try await files.wait(
      for: "film", toBe: .waiting(.gate(id: "Online", text: "Online: there is no default route")))
    #expect(film?.progress.received == 200_000)
    #expect(afar.source.readers == 0)
    await afar.move(to: .ethernet)
    try await files.downloader.waitUntilIdle()
    #expect(try await files.files().first?.resumedFrom == 200_000)
    #expect(try afar.folder.read("film") == FilesFromAfar.bytes)
    await files.close()
  }

  @Test("CX: by default, the pipeline watches the network and denies mobile networks")
  func pipeline() async throws {
    let folder = try TemporaryFolder()
    let files = try await LargeFiles(folder.path)
    let gates = await files.downloader.pipeline.gates
    #expect(gates.map { "\($0.name) \($0.summary)" } == ["Online ", "Interfaces deny mobile networks"])
    await files.close()
  }
}
