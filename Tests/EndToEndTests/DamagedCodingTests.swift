import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Compressed bytes that were proved wrong by decoding them: they are fetched again once the server is right.
  @Suite struct DamagedCodingTests {
    enum Form: String, CaseIterable { case coding, file }

    @Test("a cut gzip body is fetched again by the next command", arguments: Form.allCases, ["get", "retry"])
    func cutBodies(_ form: Form, _ command: String) async throws {
      let content = DownloadFixtures.pattern(size: 300_000, seed: 5)
      let made = try TemporaryFolder()
      let plain = try made.write(content, to: "film")
      #expect(try await Command("gzip", ["-1", "-n", "-k", plain]).run().status == 0)
      let packed = try made.read("film.gz")
      let isRight = Watched(false)
      try await DefectRun.with { request in
        let bytes = isRight.value ? packed : Array(packed.dropLast(1000))
        let reply = ScriptedReply.file(.bytes(bytes), etag: isRight.value ? "\"right\"" : "\"cut\"", for: request)
        return form == .coding ? reply.setting(["Content-Encoding": "gzip"]) : reply
      } _: { run in
        let (path, options) = form == .coding ? ("/film", []) : ("/film.gz", ["--gunzip"])
        let failed = try await run.get([path], options + ["--retry", "1"])
        #expect(failed.status == 1, "\(failed.everything)")
        #expect(failed.results.last?.error?.code == "damaged", "\(failed.everything)")
        #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/film")))
        let requests = run.server.requests.count
        isRight.update { $0 = true }
        let second =
          command == "get"
          ? try await run.get([path], options)
          : try await run.tool([command, "-d", run.folder.path("out"), "--json"])
        #expect(second.status == 0, "\(second.everything)")
        #expect(run.server.requests.count > requests, "the server is asked")
        #expect(try run.folder.read("out/film") == content)
        #expect(try run.unfinished() == [])
      }
    }
  }
}
