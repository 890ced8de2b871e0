import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// A secret in each place of a request: the server gets it, and no other place.
  @Suite(.serialized) struct ToolSecretsTests {
    @Test func nothingSecretComesOut() async throws {
      try await DefectRun.with { request in
        switch request.path {
        case "/ok": .redirect(to: "/served?token=CANARY")
        case "/served": .file(.pattern(size: 50_000), etag: "\"v1\"", for: request)
        case "/lost": .redirect(to: "/gone?X-Amz-Signature=CANARY")
        default: ScriptedReply(404, ["Set-Cookie": "s=CANARY"])
        }
      } _: { run in
        func url(_ path: String) -> String {
          "\(run.server.url(path))?token=CANARY#token=CANARY".replacing("://", with: "://user:CANARY@")
        }
        let folder = run.folder.path("out")
        let fields = ["Cookie: s=CANARY", "X-Api-Key: CANARY"].flatMap { ["-H", $0] }
        var outcomes: [Command.Outcome] = []
        for path in ["/ok", "/lost"] {
          for style in [[], ["--json"], ["--dry-run"]] {
            outcomes.append(
              try await run.tool(["get", url(path), "-d", folder, "-H", "Authorization: x CANARY"] + fields + style))
          }
        }
        for style in [[], ["--json"]] {
          outcomes.append(try await run.tool(["list", "-d", folder] + style))
          outcomes.append(try await run.tool(["resume", "-d", folder] + style))
        }
        outcomes.append(try await run.tool(["get", url("/ok").replacing("http://", with: "http://["), "-d", folder]))
        let proxy = Data("me:CANARY".utf8).base64EncodedString()
        #if LIBCURL
          let address = "127.0.0.1:\(run.server.port)"
          for options in [["-x", "http://\(address)", "-U", "me:CANARY"], ["-x", "http://me:CANARY@\(address)"]] {
            for style in [[], ["--json"], ["--dry-run"]] {
              outcomes.append(try await run.tool(["get", url("/proxied"), "-d", folder] + options + style))
            }
            outcomes.append(try await run.tool(["resume", "-d", folder] + options))
          }
          outcomes.append(try await run.tool(["get", url("/ok"), "-d", folder, "-x", "ftp://me:CANARY@\(address)"]))
          outcomes.append(try await run.tool(["get", url("/ok"), "-d", folder, "-U", "me:CANARY"]))
          let asked = run.server.requests.filter { $0.path.hasSuffix("/proxied") }
          #expect(!asked.isEmpty && asked.allSatisfy { $0.headers["Proxy-Authorization"] == "Basic \(proxy)" })
        #endif
        for outcome in outcomes {
          let text = outcome.everything
          #expect(!text.contains("CANARY") && !text.contains(proxy), "\(text)")
        }
        #expect(outcomes.contains { $0.output.contains("/lost") })

        let first = try #require(run.server.requests.first { $0.path == "/ok" })
        #expect(first.headers["Authorization"] == "x CANARY" && first.headers["X-Api-Key"] == "CANARY")
        #expect(first.target == "/ok?token=CANARY")
        #if canImport(Glibc)
          #expect(try await !Self.attributes(in: run.folder.path("")).contains("CANARY"))
        #endif
        #expect(try run.folder.contents().allSatisfy { !$0.contains("CANARY") })
        for name in try run.folder.contents() {
          let text = (try? run.folder.read(name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
          #expect(!text.contains("me:CANARY") && !text.contains(proxy), "\(name) has the password of the proxy")
        }
      }
    }

    /// The names and values of the extended attributes of all files in a folder.
    private static func attributes(in folder: String) async throws -> String {
      let script = """
        import os, sys
        for root, folders, files in os.walk(sys.argv[1]):
          for path in [os.path.join(root, name) for name in folders + files]:
            for name in os.listxattr(path, follow_symlinks=False):
              print(path, name, os.getxattr(path, name, follow_symlinks=False))
        """
      let outcome = try await Command("python3", ["-c", script, folder]).run()
      try #require(outcome.status == 0, "\(outcome.everything)")
      return outcome.output
    }
  }
}
