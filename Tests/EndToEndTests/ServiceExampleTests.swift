import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// `Examples/Service`, as a process of its own.
  @Suite struct ServiceExampleTests {
    @Test(
      "SIGTERM suspends the downloads of a service group and ends the process with status 0; the next start goes on",
      arguments: [SIGTERM, SIGINT])
    func stopsOnSignal(signal: Int32) async throws {
      let content = ScriptedContent.pattern(size: 1_000_000)
      let gate = ServerGate()
      let server = try await ScriptedHTTPServer.start { request in
        .file(content, etag: "\"1\"", for: request).held(at: gate, after: 400_000)
      }
      let folder = try TemporaryFolder()
      let url = "\(server.url("/film"))"
      let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "ServiceExample")
      let example = Command(program.path, [folder.path("out"), url])

      let (processes, started) = AsyncStream.makeStream(of: Int32.self)
      async let stopped = example.run(onStart: { started.yield($0) })
      await gate.arrivals(1)
      for await process in processes {
        kill(process, signal)
        break
      }
      let outcome = try await stopped
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(!FileManager.default.fileExists(atPath: folder.path("out/film")))
      let listed = try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run()
      #expect(listed.toolLines.map(\.state) == ["waiting"], "\(listed.everything)")

      gate.open()
      let next = try await example.run()
      #expect(next.status == 0, "\(next.everything)")
      #expect(try folder.read("out/film") == content.allBytes)
      await server.shutdown()
    }
  }
}
