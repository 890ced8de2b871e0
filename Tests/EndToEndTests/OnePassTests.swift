import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// A process that is killed while it unpacks what arrives.
  @Suite struct OnePassTests {
    @Test("killed in the middle of unpacking, the tool unpacks the file from its partial, and leaves nothing")
    func killedWhileUnpacking() async throws {
      let content = DownloadFixtures.pattern(size: 16 << 20, seed: 3)
      let folder = try TemporaryFolder()
      let plain = try folder.write(content, to: "film")
      #expect(try await Command("gzip", ["-1", "-n", "-k", plain]).run().status == 0)
      let packed = ScriptedContent.bytes(try folder.read("film.gz"))
      let gate = ServerGate()
      defer { gate.open() }
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(packed, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: gate, after: 12 << 20) : reply
      } _: { run in
        let out = run.folder.path("out")
        // Also a checkpoint must have been committed: it gives the partial its name.
        let script = """
          "$@" & tool=$!
          for i in $(seq 3000); do
            unpacked=$(find "$0/.downpipe/work" -name .unpacking -size +8000k 2>/dev/null)
            partial=$(find "$0/.downpipe/partials" -type f -size +8000k 2>/dev/null)
            [ -n "$unpacked" ] && [ -n "$partial" ] && break
            kill -0 $tool || exit 4
            sleep 0.1
          done
          kill -9 $tool; wait $tool
          [ -n "$unpacked" ] && [ -n "$partial" ] || exit 3
          """
        let get = ["get", "\(run.server.url("/film.gz"))", "-d", out, "--gunzip", "--json"]
        let killed = try await Command.downpipe(get, by: ["bash", "-c", script, out]).run()
        #expect(killed.status == 0, "\(killed.everything)")
        #expect(!FileManager.default.fileExists(atPath: out + "/film"), "nothing is published before the end")
        let left = try FileManager.default.subpathsOfDirectory(atPath: out + "/.downpipe/work")
        #expect(left.contains { $0.hasSuffix(".unpacking") }, "\(left)")
        gate.open()

        let second = try await run.get(["/film.gz"], ["--gunzip"])
        #expect(second.status == 0, "\(second.everything)")
        #expect(run.server.requests.last?.range != nil, "the bytes on disk are kept")
        let isIdentical = try run.folder.read("out/film") == content
        #expect(isIdentical)
        let work = (try? FileManager.default.subpathsOfDirectory(atPath: out + "/.downpipe/work")) ?? []
        #expect(work.isEmpty, "\(work)")
      }
    }

    #if Archive
      @Test("--extract unpacks while the bytes arrive")
      func extractsWhileBytesArrive() async throws {
        let folder = try TemporaryFolder()
        _ = try folder.write(DownloadFixtures.pattern(size: 4 << 20, seed: 4), to: "tree/first")
        _ = try folder.write(DownloadFixtures.pattern(size: 4 << 20, seed: 5), to: "tree/second")
        let packing = try await Command(
          "tar", ["--sort=name", "-czf", folder.path("tree.tar.gz"), "-C", folder.path, "tree"]
        ).run()
        #expect(packing.status == 0, "\(packing.everything)")
        let packed = ScriptedContent.bytes(try folder.read("tree.tar.gz"))
        let gate = ServerGate()
        defer { gate.open() }
        try await DefectRun.with { request in
          ScriptedReply.file(packed, etag: "\"v1\"", for: request).held(at: gate, after: 6 << 20)
        } _: { run in
          let out = run.folder.path("out")
          async let ending = run.get(["/tree.tar.gz"], ["--extract"])
          // The first file is there before the last byte has come.
          let script = """
            for i in $(seq 3000); do
              [ -n "$(find "$0/.downpipe/work" -path '*tree/second' 2>/dev/null)" ] && exit 0
              sleep 0.1
            done
            exit 1
            """
          #expect(try await Command("bash", ["-c", script, out]).run().status == 0)
          gate.open()
          let outcome = try await ending
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.folder.read("out/tree/tree/second") == DownloadFixtures.pattern(size: 4 << 20, seed: 5))
        }
      }
    #endif
  }
}
