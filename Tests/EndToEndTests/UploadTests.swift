#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import ObjectStorageServer
  import Synchronization
  import Testing

  @testable import DownpipeS3

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  extension EndToEnd {
    /// The tool uploads what it downloads, to a real object storage.
    @Suite(.serialized) struct UploadTests {
      private let folder: TemporaryFolder
      private let server: ObjectStorageServer
      private let client: S3Client
      private let bucket = "b\(UInt64.random(in: 0...UInt64.max))"

      init() async throws {
        folder = try TemporaryFolder()
        server = try ObjectStorageServer.shared.get()
        var configuration = S3.Configuration()
        configuration.endpoint = URL(string: server.endpoint)
        configuration.credentials = .keys(id: server.accessKey, secret: server.secretKey)
        configuration.connections.proxy = .none
        client = try S3Client(configuration)
        _ = try await client.send(S3Call(method: .put, bucket: bucket, body: MemoryBody(bytes: []), purpose: "a test"))
      }

      private func get(_ arguments: [String], secret: String? = nil) throws -> Command {
        try Command.downpipe(
          ["get", "-d", folder.path("files"), "--ledger", folder.path("ledger"), "--json"] + arguments, by: ["env"],
          environment: [
            "AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_ACCESS_KEY_ID": server.accessKey,
            "AWS_SECRET_ACCESS_KEY": secret ?? server.secretKey, "AWS_REGION": server.region,
          ])
      }

      private func object(_ key: String) async throws -> [UInt8] {
        let (_, response, failure) = try await client.open(
          S3Call(method: .get, bucket: bucket, key: key, purpose: "a test"))
        if let failure { throw failure }
        let bytes = Mutex<[UInt8]>([])
        try await response.push(
          into: { chunk in bytes.withLock { list in chunk.withUnsafeBytes { list.append(contentsOf: $0) } } },
          pace: .unlimited, limit: nil)
        return bytes.withLock { $0 }
      }

      @Test("A process that is killed again and again while it uploads sends few parts twice, and the object is right")
      func killed() async throws {
        let size = 70 << 20
        let content = ScriptedContent.pattern(size: Int64(size))
        let web = try await ScriptedHTTPServer.start { .file(content, etag: "\"one\"", for: $0) }
        let arguments = [web.url("/film.bin").absoluteString, "--upload-to", "s3://\(bucket)/2026"]
        var kills = 0
        while kills < 4 {
          let before = try server.partsSent(to: bucket)
          let started = Watched<Int32?>(nil)
          async let run = get(arguments).run(onStart: { process in started.update { $0 = process } })
          await started.wait { $0 != nil }
          let process = try #require(started.value)
          // Until a part was sent.
          while try server.partsSent(to: bucket) == before, kill(process, 0) == 0 { await Task.yield() }
          kill(process, SIGKILL)
          let outcome = try await run
          guard outcome.status == 128 + SIGKILL else {
            #expect(outcome.status == 0, "\(outcome.everything)")
            break
          }
          kills += 1
        }
        #expect(kills > 0)
        let outcome = try await get(arguments).run()
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.output.contains("s3://\(bucket)/2026/film.bin"), "\(outcome.everything)")
        #expect(try await object("2026/film.bin") == content.bytes(in: 0..<content.size))
        #expect(!FileManager.default.fileExists(atPath: folder.path("files/film.bin")))
        let parts = (size + (8 << 20) - 1) / (8 << 20)
        // At each kill, those on their way.
        #expect(try server.partsSent(to: bucket) <= parts + kills * 2)
        // Once more: the object is there.
        #expect(try await get(arguments).run().status == 0)
        await web.shutdown()
      }

      @Test("Wrong keys are told as such, the bytes stay, and the right ones upload them")
      func wrongKeys() async throws {
        let content = ScriptedContent.pattern(size: 100_000)
        let web = try await ScriptedHTTPServer.start { .file(content, etag: "\"one\"", for: $0) }
        let arguments = [web.url("/small.bin").absoluteString, "--upload-to", "s3://\(bucket)"]
        let outcome = try await get(arguments, secret: "wrong").run()
        #expect(outcome.status != 0)
        #expect(outcome.everything.contains("objectStorageCredentials"), "\(outcome.everything)")
        let requests = web.activity.requestCount
        let second = try await get(arguments).run()
        #expect(second.status == 0, "\(second.everything)")
        #expect(try await object("small.bin") == content.bytes(in: 0..<content.size))
        #expect(web.activity.requestCount == requests, "the file was fetched again")
        await web.shutdown()
      }
    }
  }
#endif
