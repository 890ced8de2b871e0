@_spi(Ledger) import Downpipe
import DownpipeBackgroundURLSession
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Testing

@testable import LargeFiles

/// Sessions, killed processes and the records.
@Suite(.endsHangs)
struct TransferTests {
  /// `nil` for the default source on Linux.
  private static let configurations: [URLSessionSource.Configuration?] = [nil, .default, .ephemeral]

  @Test("CX: session configurations: default, ephemeral", arguments: configurations)
  func sessions(_ configuration: URLSessionSource.Configuration?) async throws {
    let test = try await TestFiles()
    test.gate.open()
    func run(_ files: LargeFiles) async throws { _ = try await files.add(test.url("a")).value }
    if let configuration {
      try await test.open(source: URLSessionSource(configuration), run)
    } else {
      try await test.open(run)
    }
    #expect(try test.folder.read("files/a") == TestFiles.content.allBytes)
    await test.shutdown()
  }

  #if !canImport(Darwin)
    @Test("CX: session configurations: background, which exists on Apple platforms only")
    func background() async throws {
      let folder = try TemporaryFolder()
      await #expect {
        try await LargeFiles.inBackground(folder.path, session: "files")
      } throws: { error in
        (error as? DownloadError)?.code == .invalidPipeline
      }
    }

    @Test("CX: the app's completion handler is called, at once where background sessions do not exist")
    @MainActor func completionHandler() {
      var calls = 0
      URLSessionSource.handleBackgroundEvents(identifier: "files") { calls += 1 }
      #expect(calls == 1)
    }
  #endif

  #if SQLite
    @Test("CX: a killed process's transfers come back as waiting")
    func kill() async throws {
      let test = try await TestFiles()
      let closed = ManualGate("Network", closed: "not yet")
      try await test.open(network: closed) { files in
        for name in ["a", "b", "c"] { try await files.add(test.url(name)) }
      }
      let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "LargeFiles")
      let ledger = SQLiteLedger("\(test.root)/.downpipe/ledger.sqlite")
      try await OtherProcess.run(program, root: test.root, file: "a") { _ in
        // Killed when its ledger has a checkpoint of both transfers.
        let store = try await ledger.open()
        let records = try await store.records(DownloadQuery(phases: [.transferring]))
        try await store.close()
        return records.map(\.checkpoint.ranges.prefixLength) == [TestFiles.held, TestFiles.held]
      }
      try await test.open(network: closed) { files in
        for (id, bytes) in [("a", TestFiles.held), ("b", TestFiles.held), ("c", 0)] as [(DownloadID, Int64)] {
          let file = try await files.wait(for: id, toBe: .waiting(.gate(id: "Network", text: "Network: not yet")))
          #expect(file?.progress.received == bytes)
        }
        #expect(try await files.downloader.counts() == [.waiting: 3])
        test.gate.open()
        closed.open()
        try await files.downloader.waitUntilIdle()
      }
      for name in ["a", "b"] { #expect(test.starts(of: name) == [nil, TestFiles.goesOnAt]) }
      for name in ["a", "b", "c"] { #expect(try test.folder.read("files/\(name)") == TestFiles.content.allBytes) }
      await test.shutdown()
    }
  #endif

  @Test("CX: database of every item: state, sizes, progress, speed, last-speed time")
  func database() async throws {
    let folder = try TemporaryFolder()
    let gates = [ServerGate(), ServerGate()]
    let server = try await ScriptedHTTPServer.start { request in
      ScriptedReply.file(.pattern(size: 4 << 20), etag: "\"1\"", for: request)
        .held(at: gates[0], after: 1 << 20).held(at: gates[1], after: 2 << 20)
    }
    let time = VirtualTime(date: Date(timeIntervalSince1970: 1_000_000_000))
    let files = try await LargeFiles(
      folder.path, network: ManualGate("Network"), cellular: ManualGate("Cellular"), time: time)
    for name in ["a", "b", "c"] { try await files.add(server.url("/\(name)")) }
    // The speed is measured every tenth of a second: a mebibyte in that time.
    for (number, gate) in gates.enumerated() {
      while try await files.files().map(\.progress.received) != [Int64(number + 1) << 20, Int64(number + 1) << 20, 0] {
        await Task.yield()
      }
      await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
      time.advance(by: .milliseconds(100))
      await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
      if number == 0 { gate.open() }
    }
    let records = try await files.files()
    #expect(records.map(\.state.phase) == [.transferring, .transferring, .waiting])
    let a = try #require(records.first)
    #expect(a.progress.received == 2 << 20 && a.progress.total == .known(4 << 20) && a.progress.fraction == 0.5)
    #expect(a.progress.bytesPerSecond?.rounded() == 10_485_760.0)
    #expect(a.updatedAt == time.date)
    #expect(
      records.map(LargeFiles.line) == [
        "a        transferring  2.00 MiB of 4.00 MiB  50%   10.0 MiB/s  01:46:40",
        "b        transferring  2.00 MiB of 4.00 MiB  50%   10.0 MiB/s  01:46:40",
        "c        waiting       0 B of –              0%    –           01:46:40\n"
          + "         2 of 2 downloads are running",
      ])
    gates[1].open()
    try await files.downloader.waitUntilIdle()
    await files.close()
    #if SQLite
      // The records survive the process.
      let again = try await LargeFiles(folder.path, network: ManualGate("Network", closed: "not yet"))
      #expect(
        try await again.files().map(LargeFiles.line)
          == ["a", "b", "c"].map { "\($0)        finished      4.00 MiB of 4.00 MiB  100%  –           01:46:40" })
      await again.close()
    #endif
    await server.shutdown()
  }
}
