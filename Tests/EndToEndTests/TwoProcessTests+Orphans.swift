import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

// Partials that no ledger knows.
extension EndToEnd.TwoProcessTests {
  /// The files of a ledger that was deleted, before and after there is a new one.
  @Test(arguments: ["no ledger", "a new ledger"])
  func orphansAreListedAndRemoved(beside ledger: String) async throws {
    let held = ServerGate()
    let server = try await serve(held)
    let folder = try TemporaryFolder()
    let own = "out/.downpipe/ledger.sqlite"
    try await runKilled(get(server, into: folder, ledger: own), in: folder, ledger: own)
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path("out/.downpipe"))
    where name.hasPrefix("ledger.sqlite") {
      try FileManager.default.removeItem(atPath: folder.path("out/.downpipe/\(name)"))
    }
    if ledger == "a new ledger" {
      let other = try await Command.downpipe(["get", "\(server.url("/small"))", "-d", folder.path("out")]).run()
      #expect(other.status == 0, "\(other.everything)")
    }
    let partial = try #require(try removals(in: folder).first { $0.hasSuffix(".part") })

    let listed = try await Command.downpipe(["list", "--orphans", "-d", folder.path("out"), "--json"]).run()
    #expect(listed.status == 0, "\(listed.everything)")
    let orphan = listed.toolLines.first
    #expect(listed.toolLines.count == 1, "\(listed.everything)")
    #expect(partial.hasSuffix("/\(orphan?.id ?? "").\(orphan?.generation ?? 0).part"), "\(partial)")
    #expect((orphan?.bytes ?? 0) >= Self.before)

    let removed = try await Command.downpipe(["remove", "--orphans", "-d", folder.path("out")]).run()
    guard ledger == "a new ledger" else {
      // Without a ledger every partial looks like an orphan; a user who forgot --ledger must not lose them all.
      #expect(removed.status == 2, "\(removed.everything)")
      #expect(try removals(in: folder).contains(partial))
      held.open()
      return await server.shutdown()
    }
    #expect(removed.status == 0, "\(removed.everything)")
    #expect(removed.output == "removed 1\n")
    #expect(try removals(in: folder).isEmpty)
    let none = try await Command.downpipe(["list", "--orphans", "-d", folder.path("out"), "--json"]).run()
    #expect(none.status == 0 && none.lines.isEmpty, "\(none.everything)")
    held.open()
    await server.shutdown()
  }

  @Test func aPartialInUseIsNotAnOrphan() async throws {
    let held = ServerGate()
    let server = try await serve(held)
    let folder = try TemporaryFolder()
    // The default ledger knows another download.
    let other = try await Command.downpipe(["get", "\(server.url("/other"))", "-d", folder.path("out"), "--json"]).run {
      line, process in if ToolLine(line)?.bytes == Self.before { kill(process, SIGINT) }
    }
    #expect(other.status == 130, "\(other.everything)")
    let arrived = ServerGate()
    async let running = run(get(server, into: folder, ledger: "own"), arrived, when: Self.hasArrived)
    await arrived.wait()
    try await Checkpoints.committed(folder.path("own"), of: folder.path("out"))
    let listed = try await Command.downpipe(["list", "--orphans", "-d", folder.path("out"), "--json"]).run()
    #expect(listed.status == 0 && listed.lines.isEmpty, "\(listed.everything)")
    let removed = try await Command.downpipe(["remove", "--orphans", "-d", folder.path("out")]).run()
    #expect(removed.status == 0, "\(removed.everything)")
    #expect(removed.output == "removed 0\n")
    held.open()
    let outcome = try await running
    #expect(outcome.status == 0, "\(outcome.everything)")
    #expect(server.requests.filter { $0.path == "/film" }.count == 1)
    let isIdentical = try folder.read("out/film") == Self.content.allBytes
    #expect(isIdentical)
    // The partial of the default ledger still exists.
    let resumed = try await Command.downpipe(["resume", "-d", folder.path("out"), "--json"]).run()
    #expect(resumed.status == 0, "\(resumed.everything)")
    #expect(resumed.results.last?.resumedFrom == Self.before)
    await server.shutdown()
  }
}
