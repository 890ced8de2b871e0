#if AsyncHTTPClient
  import ChildPipe
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  private let corpus = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"].map {
    URL(filePath: $0).appending(path: "curl")
  }

  /// Fetches the replies of curl's own test suite and compares the results with curl's.
  ///
  /// Half of the replies end their lines with a bare LF, which an HTTP parser may refuse. Each reply is therefore
  /// served unchanged and with corrected line ends.
  @Suite(.endsHangs, .enabled(if: corpus != nil, "set DOWNPIPE_CORPORA to the folder of corpora"))
  struct AsyncHTTPClientCorpusTests {
    private struct Corpus: Decodable {
      var cases: [Case]
    }

    private struct Case: Decodable, Sendable {
      struct Expectation: Decodable {
        var outcome: String
        var body_b64: String?
      }
      var id: String
      var url: String
      var ask: [String: Bool]
      var expect: Expectation

      enum Keys: String, CodingKey { case id, url, ask, expect }

      /// Only cases without options, or with the option to follow redirects, apply to a source.
      init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        id = try values.decode(String.self, forKey: .id)
        url = try values.decode(String.self, forKey: .url)
        ask = (try? values.decode([String: Bool].self, forKey: .ask)) ?? ["other": true]
        expect = try values.decode(Expectation.self, forKey: .expect)
      }
    }

    @Test(arguments: [(repaired: false, floor: 22), (repaired: true, floor: 35)])
    func agreesWithCurl(_ repaired: Bool, _ floor: Int) async throws {
      let folder = try #require(corpus)
      let file = folder.appending(path: "downloader-cases.json")
      let cases = try JSONDecoder().decode(Corpus.self, from: Data(contentsOf: file)).cases
        .filter { $0.ask.keys.allSatisfy { $0 == "follow" } }
      try #require(cases.count > 20)
      let servers = try await ReplayServers.start(in: folder, repaired: repaired)
      defer { servers.stop() }
      var disagreeing: [String] = []
      for example in cases {
        let port = try #require(servers.ports[example.id])
        if let outcome = await Self.outcome(example, port: port) { disagreeing.append("\(example.id): \(outcome)") }
      }
      let agreeing = cases.count - disagreeing.count
      print("curl's cases\(repaired ? ", line ends repaired" : ""): \(agreeing) of \(cases.count) as curl does")
      for line in disagreeing { print("  \(line)") }
      #expect(agreeing >= floor)
    }

    /// The difference between the result and the expectation; `nil` when there is none.
    private static func outcome(_ example: Case, port: Int) async -> String? {
      guard let url = URL(string: example.url.replacing("@PORT@", with: "\(port)")) else { return "not a URL" }
      let source = AsyncHTTPClientSource {
        $0.maximumRedirects = example.ask["follow"] == nil ? 0 : 50
        $0.idleTimeLimit = .seconds(20)
      }
      let expected = example.expect.outcome == "file" ? Data(base64Encoded: example.expect.body_b64 ?? "") : nil
      do {
        let fetched = try await source.fetch(url)
        if case .none(let refusal) = fetched.reply.coverage {
          return expected == nil ? nil : "\(refusal) instead of a file"
        }
        guard let expected else { return "a file instead of \(example.expect.outcome)" }
        return Data(fetched.bytes) == expected
          ? nil : "\(fetched.bytes.count) bytes instead of the \(expected.count) expected"
      } catch {
        return expected == nil ? nil : "\(error) instead of a file"
      }
    }
  }

  /// The replay servers of the corpus, one for each case, in one process that ends with its standard input.
  private struct ReplayServers: Sendable {
    private static let program = """
      import json, sys
      sys.path.insert(0, sys.argv[1])
      import replay
      cases = json.load(open(sys.argv[1] + "/cases.json"))["cases"]
      servers = {c["id"]: replay.Server(c, 0, 20, 1.0, sys.argv[2] == "1").start() for c in cases}
      print(json.dumps({k: s.port for k, s in servers.items()}), flush=True)
      sys.stdin.read()
      import os
      os._exit(0)
      """

    let ports: [String: Int]
    private let input: FileHandle

    static func start(in folder: URL, repaired: Bool) async throws -> ReplayServers {
      let (process, input, output) = (Process(), try ChildPipe(), try ChildPipe())
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = ["python3", "-B", "-c", program, folder.path(), repaired ? "1" : "0"]
      process.standardError = FileHandle.nullDevice
      try process.run(input: input, output: output)
      let reading = output.fileHandleForReading
      let line = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          var line = Data()
          while line.last != 0x0A {
            let more = reading.availableData
            if more.isEmpty { break }
            line += more
          }
          continuation.resume(returning: line)
        }
      }
      let ports = try JSONDecoder().decode([String: Int].self, from: line)
      return ReplayServers(ports: ports, input: input.fileHandleForWriting)
    }

    func stop() { try? input.close() }
  }
#endif
