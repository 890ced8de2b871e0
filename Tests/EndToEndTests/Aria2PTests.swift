#if RPC
  import Downpipe
  import DownpipeTesting
  import Foundation
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  extension EndToEnd {
    /// aria2p, the library of Python for aria2: all of it that is not BitTorrent.
    @Suite(.serialized) struct Aria2PTests {
      private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
      /// Where `.ci/setup --tests` puts the packages of Python.
      private static let packages = folder.appending(path: "../../.build/python").standardizedFileURL.path
      private static let script = folder.appending(path: "clients/aria2p_client.py").path

      private func run(_ arguments: [String]) async throws -> Command.Outcome {
        try #require(
          FileManager.default.fileExists(atPath: Self.packages + "/aria2p"),
          "aria2p is missing in \(Self.packages): run .ci/setup --tests")
        return try await Command(
          "timeout", ["-k", "10", "\(Command.hangLimit)", "python3", Self.script] + arguments,
          environment: ["PYTHONPATH": Self.packages, "PYTHONDONTWRITEBYTECODE": "1"]
        ).run()
      }

      @Test func theWholeClient() async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Daemon.start(folder.path("out"))
        let outcome = try await run(["\(daemon.port)", daemon.token ?? "", folder.path("out")])
        #expect(outcome.status == 0, "\(outcome.output.split(separator: "\n").last ?? "") \(outcome.everything)")
        #expect(outcome.lines.last == "ok shutdown", "\(outcome.everything)")
        await daemon.end(SIGKILL)
      }

      @Test("what the script expects is what aria2c does")
      func theScriptAgainstARealServer() async throws {
        let server = try await RealAria2.start()
        let outcome = try await run(["--aria2c", "\(server.port)", RealAria2.token, server.folder.path("out")])
        #expect(outcome.status == 0, "\(outcome.everything)")
        await server.end()
      }
    }
  }
#endif
