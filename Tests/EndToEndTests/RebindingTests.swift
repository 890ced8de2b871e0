#if os(Linux)
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  extension EndToEnd {
    /// `--untrusted` beside a name server that changes its answers, in a network of its own: one address of the public
    /// internet, and a service at 127.0.0.1 that nothing may reach.
    @Suite(.endsHangs, .enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    struct RebindingTests {
      /// The answers depend on the name: the first one for `rebind` is public, later ones are private.
      private static let nameServer = """
        import socket, struct
        public, private = "8.8.8.8", "127.0.0.1"
        asked = set()
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 53))
        while True:
            query, client = server.recvfrom(4096)
            end = query.index(0, 12)
            name = query[13:13 + query[12]].decode().lower()
            kind, = struct.unpack("!H", query[end + 1:end + 3])
            answers = []
            if kind == 1:
                if name == "rebind":
                    answers = [private] if name in asked else [public]
                    asked.add(name)
                else:
                    answers = {"public": [public], "private": [private], "mixed": [private, public]}.get(name, [])
                answers = [socket.inet_aton(address) for address in answers]
            elif kind == 28 and name == "mapped":
                answers = [socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1")]
            reply = query[:2] + b"\\x81\\x80" + struct.pack("!HHHH", 1, len(answers), 0, 0) + query[12:end + 5]
            for address in answers:
                reply += b"\\xc0\\x0c" + struct.pack("!HHIH", kind, 1, 0, len(address)) + address
            server.sendto(reply, client)
        """

      /// Serves its name at `/`, ends `/cut` early, and redirects `/to/…`.
      private static let webServer = """
        import http.server, sys
        address, name, log = sys.argv[1:]
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                open(log, "a").write(name + " " + self.path + "\\n")
                body = name.encode() * 1000000
                if self.path.startswith("/to/"):
                    self.send_response(302)
                    self.send_header("Location", self.path[4:])
                    self.end_headers()
                    return
                self.send_response(200)
                self.send_header("ETag", '"1"')
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:5000000] if self.path == "/cut" else body)
            def log_message(self, *arguments): pass
        http.server.ThreadingHTTPServer((address, 80), Handler).serve_forever()
        """

      /// Runs the tool once for each list of arguments, in an isolated network with these servers.
      private func run(_ runs: [[String]], in folder: TemporaryFolder) async throws -> [Command.Outcome] {
        try Data(Self.nameServer.utf8).write(to: URL(filePath: folder.path("names.py")))
        try Data(Self.webServer.utf8).write(to: URL(filePath: folder.path("web.py")))
        try Data("nameserver 127.0.0.1\noptions attempts:1\n".utf8).write(to: URL(filePath: folder.path("resolv.conf")))
        let begin = """
          set -e
          cd "$0"
          # libdispatch looks its threads up there, and ends a process that has none.
          mount -t proc proc /proc
          ip link set lo up
          ip addr add 8.8.8.8/32 dev lo
          mount --bind resolv.conf /etc/resolv.conf
          python3 names.py > /dev/null 2>&1 &
          python3 web.py 8.8.8.8 public log > /dev/null 2>&1 &
          python3 web.py 127.0.0.1 secret log > /dev/null 2>&1 &
          for address in 8.8.8.8 127.0.0.1; do
            until (echo > /dev/tcp/$address/80) 2> /dev/null; do sleep 0.1; done
          done
          until grep -q :0035 /proc/net/udp; do sleep 0.1; done
          set +e

          """
        let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "downpipe").path
        var script = begin
        for (number, arguments) in runs.enumerated() {
          let words = arguments.map { "'\($0)'" }.joined(separator: " ")
          script += "'\(tool)' get --untrusted -d out --retry 0 --json \(words) "
          script += "> \(number).out 2> \(number).err; echo $?\n"
        }
        let outcome = try await Command(
          // The servers end with the shell, which is the first process of a namespace.
          "timeout",
          [
            "-k", "1", "\(Command.hangLimit)", "unshare", "-n", "-m", "-p", "--fork", "--kill-child", "bash", "-c",
            script, folder.path,
          ]
        ).run()
        let statuses = outcome.lines.compactMap { Int32($0) }
        try #require(statuses.count == runs.count, "\(outcome.output)\n\(outcome.errors)")
        return try statuses.enumerated().map { number, status in
          Command.Outcome(
            status: status, output: try String(contentsOfFile: folder.path("\(number).out"), encoding: .utf8),
            errors: try String(contentsOfFile: folder.path("\(number).err"), encoding: .utf8))
        }
      }

      @Test("No answer of a name server and no redirect leads to a private address")
      func privateAddresses() async throws {
        let folder = try TemporaryFolder()
        let refused = [
          "http://private.test/a", "http://mapped.test/a", "http://public.test/to/http://private.test/a",
          "http://public.test/to/http://2130706433/a", "http://127.1/a",
        ]
        let outcomes = try await run(
          [["http://public.test/a"], ["http://mixed.test/b"]] + refused.map { [$0] }, in: folder)
        #expect(outcomes[0].status == 0, "\(outcomes[0].everything)")
        for (url, outcome) in zip(refused, outcomes.dropFirst(2)) {
          #expect(outcome.status == 1, "\(url): \(outcome.everything)")
          #expect(outcome.results.last?.error?.code == "privateAddress", "\(url): \(outcome.everything)")
        }
        let log = try String(contentsOfFile: folder.path("log"), encoding: .utf8)
        #expect(!log.contains("secret"), "\(log)")
      }

      @Test("A name that leads to a private address when a download resumes is refused, and the bytes stay")
      func rebinding() async throws {
        let folder = try TemporaryFolder()
        let url = "http://rebind.test/cut"
        let outcomes = try await run([[url], [url]], in: folder)
        #expect(outcomes[0].status == 1, "\(outcomes[0].everything)")
        #expect(outcomes[0].results.last?.error?.code == "network", "\(outcomes[0].everything)")
        let kept = try #require(outcomes[0].results.last?.bytes)
        #expect(kept == 5_000_000)
        #expect(outcomes[1].status == 1, "\(outcomes[1].everything)")
        #expect(outcomes[1].results.last?.error?.code == "privateAddress", "\(outcomes[1].everything)")
        #expect(outcomes[1].results.last?.bytes == kept)
        let log = try String(contentsOfFile: folder.path("log"), encoding: .utf8)
        #expect(!log.contains("secret"), "\(log)")
      }
    }
  }
#endif
