#if Curl
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import Synchronization
  import Testing

  @testable import DownpipeS3

  @Suite("What a storage refuses for a while, and what for good")
  struct RefusalTests {
    /// What the storage has refused; `nil` if it has not.
    private static func refusal(of work: @Sendable () async throws -> Void) async throws -> S3Failure? {
      do { try await work() } catch let failure as S3Failure { return failure }
      return nil
    }

    @Test func `SlowDown is waited out, at least as long as the storage asks`() async throws {
      try await withScriptedServer { request in
        request.number <= 2 ? .refusal(503, "SlowDown", ["Retry-After": "7"]) : ScriptedReply(200, body: .text("x"))
      } _: { server in
        let time = VirtualTime()
        let client = try S3Client(.scripted(server) { $0.time = time })
        async let answer = client.send(.ofTest)
        for _ in 1...2 { #expect(await time.advanceToNextSleeper() >= .seconds(7)) }
        let result = try await answer.body
        #expect(result == Array("x".utf8))
        #expect(server.requests.count == 3)
      }
    }

    @Test func `a long Retry-After is bounded`() async throws {
      try await withScriptedServer { request in
        request.number == 1 ? .refusal(503, "SlowDown", ["Retry-After": "999999999"]) : ScriptedReply(200)
      } _: { server in
        let time = VirtualTime()
        let client = try S3Client(.scripted(server) { $0.time = time })
        async let answer = client.send(.ofTest)
        #expect(await time.advanceToNextSleeper() == .seconds(60))
        let result = try await answer.status
        #expect(result == 200)
      }
    }

    @Test(arguments: ["SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", ""])
    func `what the storage refuses each time is told with its own words, and may be tried later`(
      code: String
    ) async throws {
      try await withScriptedServer { _ in
        code.isEmpty
          ? ScriptedReply(502, body: .text("<html>no document of a storage"))
          : .refusal(code == "RequestTimeout" ? 400 : 503, code, ["Retry-After": "9"])
      } _: { server in
        let time = VirtualTime()
        let client = try S3Client(
          .scripted(server) {
            $0.time = time
            $0.attempts = 3
          })
        async let refusal = Self.refusal { _ = try await client.send(.ofTest) }
        for _ in 1...2 { await time.advanceToNextSleeper() }
        let failure = try #require(try await refusal)
        #expect(server.requests.count == 3)
        let error = failure.error("a test", bucket: "bucket")
        #expect(error.code == .network)
        #expect(code.isEmpty || error.message.contains("\(code): It is so."))
        #expect(error.retryAfter == (code.isEmpty ? nil : .seconds(9)))
      }
    }

    @Test(arguments: [
      ("NoSuchBucket", 404, DownloadError.Code.bucketNotFound),
      ("InvalidAccessKeyId", 403, .objectStorageCredentials),
      ("SignatureDoesNotMatch", 403, .objectStorageCredentials),
      ("RequestTimeTooSkewed", 403, .objectStorageCredentials),
      ("ExpiredToken", 400, .objectStorageCredentials),
      ("AccessDenied", 403, .objectStorageDenied),
      ("EntityTooLarge", 400, .processing),
    ])
    func `what no retry mends is asked once`(code: String, status: Int, expected: DownloadError.Code) async throws {
      try await withScriptedServer { _ in
        .refusal(status, code)
      } _: { server in
        let client = try S3Client(.scripted(server))
        let failure = await #expect(throws: S3Failure.self) { _ = try await client.send(.ofTest) }
        #expect(failure?.error("a test", bucket: "bucket").code == expected)
        // Fixed keys are compared once more, and are the same.
        #expect(server.requests.count == 1)
      }
    }

    @Test func `a storage that names another region each time is asked twice`() async throws {
      try await withScriptedServer { request in
        .refusal(400, "AuthorizationHeaderMalformed", ["x-amz-bucket-region": "region-\(request.number)"])
      } _: { server in
        let client = try S3Client(.scripted(server))
        await #expect(throws: S3Failure.self) { _ = try await client.send(.ofTest) }
        #expect(server.requests.count == 2)
      }
    }

    @Test(arguments: ["InternalError", "SlowDownWrite", "XMinioWriteQuorum", ""])
    func `an answer that becomes an error after its status is tried again`(code: String) async throws {
      let hasFailed = Atomic(false)
      try await withScriptedServer { request in
        guard request.method == "POST" else { return ScriptedReply(404) }
        return hasFailed.exchange(true, ordering: .relaxed)
          ? ScriptedReply(
            200, body: .text("<CompleteMultipartUploadResult><ETag>\"e\"</ETag></CompleteMultipartUploadResult>"))
          : .refusal(200, code)
      } _: { server in
        let time = VirtualTime()
        let uploads = MultipartUploads(client: try S3Client(.scripted(server) { $0.time = time }), bucket: "bucket")
        async let outcome = uploads.complete("key", "u", [], onlyIfNew: true)
        await time.advanceToNextSleeper()
        let result = try await outcome
        #expect(result == .stored(etag: "\"e\""))
      }
    }

    @Test(arguments: ["PreconditionFailed", "NoSuchUpload", "InvalidPart"])
    func `an error after the status that no retry mends is asked for once`(code: String) async throws {
      try await withScriptedServer { request in
        request.method == "POST" ? .refusal(200, code) : ScriptedReply(404)
      } _: { server in
        let uploads = MultipartUploads(client: try S3Client(.scripted(server)), bucket: "bucket")
        do {
          let outcome = try await uploads.complete("key", "u", [], onlyIfNew: true)
          #expect(outcome == (code == "NoSuchUpload" ? .unknownUpload : .exists) && code != "InvalidPart")
        } catch let error as DownloadError {
          #expect(error.code == .processing && code == "InvalidPart", "\(error)")
        }
        #expect(server.requests.count == 1)
      }
    }

    @Test func `an upload ends whole at a storage that slows it down at each step`() async throws {
      let bytes = DownloadFixtures.pattern(size: (10 << 20) + 7)
      let stored = Mutex<[Int: Int]>([:])
      try await withScriptedServer { request in
        // Each request is refused the first time.
        let isFirst = stored.withLock { stored in
          let key = (request.method + request.target).hashValue
          defer { stored[key, default: 0] += 1 }
          return stored[key] == nil
        }
        if isFirst, request.method != "HEAD" { return .refusal(503, "SlowDown") }
        switch (request.method, request.part) {
        case ("HEAD", _): return ScriptedReply(404)
        // It answers before it has read the part, so that the connection cannot be used again.
        case ("PUT", let part?): return ScriptedReply(200, ["ETag": "\"part-\(part)\"", "Connection": "close"])
        case ("POST", _) where request.target.contains("uploads"):
          return ScriptedReply(200, body: .text("<R><UploadId>u</UploadId></R>"))
        case ("POST", _): return ScriptedReply(200, body: .text("<R><ETag>\"whole-3\"</ETag></R>"))
        default: return .refusal(400, "Unexpected")
        }
      } _: { server in
        let time = VirtualTime()
        let folder = try TemporaryFolder()
        let path = folder.path + "/film.bin"
        try Data(bytes).write(to: URL(filePath: path))
        let step = UploadTo(try S3("s3://bucket", .scripted(server) { $0.time = time }))
        let file = File(path: path, name: "film.bin", size: .known(Int64(bytes.count)))
        let context = ProcessingContext(
          request: DownloadRequest(try #require(URL(string: "https://example.org/film.bin"))), workspace: nil,
          downloadedName: "film.bin", note: { _ in })
        let clock = Task { while !Task.isCancelled { await time.advanceToNextSleeper() } }
        let result = try await step.process(file, in: context)
        clock.cancel()
        #expect(result.artifact.remoteURL?.absoluteString == "s3://bucket/film.bin")
        let parts = server.requests.compactMap(\.part)
        #expect(parts.sorted() == [1, 1, 2, 2, 3, 3])
      }
    }

    @Test func `a source tells the status and the wait, so that the downloader's Retry decides`() async throws {
      try await withScriptedServer { _ in
        .refusal(503, "SlowDown", ["Retry-After": "30"])
      } _: { server in
        let session = S3Session(client: try S3Client(.scripted(server)))
        let error = await #expect(throws: DownloadError.self) {
          _ = try await session.open(SourceRequest(url: try #require(URL(string: "s3://bucket/key"))))
        }
        #expect(error?.code == .httpStatus && error?.httpStatus == 503)
        #expect(error?.retryAfter == .seconds(30))
        #expect(error?.message.contains("SlowDown") == true)
        await session.stop()
      }
    }
  }
#endif
