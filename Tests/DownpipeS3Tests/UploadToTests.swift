#if Curl
  import DownpipeCore
  import DownpipeHTTP
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import ObjectStorageServer
  import Synchronization
  import Testing

  @testable import DownpipeS3

  @Suite("UploadTo, with a real server")
  struct UploadToTests {
    private func file(_ bytes: [UInt8], named name: String = "film.bin", in folder: TemporaryFolder) throws -> File {
      let path = folder.path + "/" + name
      try Data(bytes).write(to: URL(filePath: path))
      return File(path: path, name: name, size: .known(Int64(bytes.count)), mediaType: "video/x-test")
    }

    private func context(
      _ notes: Notes = Notes(), follower: (any TransferFollower)? = nil, size: Int64? = nil, replaces: Artifact? = nil,
      following bytes: [UInt8]? = nil
    ) throws -> ProcessingContext {
      ProcessingContext(
        request: DownloadRequest(try #require(URL(string: "https://example.org/film.bin"))), workspace: nil,
        priorNote: notes.last, follower: follower, bytesReceived: size ?? bytes.map { Int64($0.count) },
        replaces: replaces,
        downloadedName: "film.bin", mediaType: "video/x-test",
        note: { notes.add($0) },
        readBack: bytes.map(Self.readBack))
    }

    private static func readBack(_ bytes: [UInt8]) -> ProcessingContext.ReadBack {
      { offset, span in span.withUnsafeMutableBytes { MemoryBody(bytes: bytes).read(into: $0, at: offset) } }
    }

    /// Gives a follower bytes, on a thread that may block, as the engine does.
    private func follow(
      _ follower: any TransferFollower, _ bytes: ArraySlice<UInt8>, discards: Bool = false
    ) async throws {
      try await BlockingThreads.run { _ in
        if !bytes.isEmpty { try bytes.withUnsafeBytes { try follower.take($0.bytes) } }
        if discards { follower.discard() }
      }
    }

    /// The notes of a step, as the ledger keeps them.
    final class Notes: Sendable {
      private let list: Mutex<[String]>
      init(_ notes: [String] = []) { list = Mutex(notes) }
      var last: String? { list.withLock(\.last) }
      func add(_ note: String) { list.withLock { $0.append(note) } }
    }

    /// Returns when parts have been sent to the bucket.
    private func untilSent(_ count: Int, to bucket: TestBucket) async throws {
      while try bucket.partsSent() < count { _ = try await bucket.openUploads() }
    }

    @Test(arguments: [0, 1, 100_000, 5 << 20, (5 << 20) + 1, 12 << 20])
    func `a file of any size becomes an object, and the artifact is its URL`(count: Int) async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let bytes = DownloadFixtures.pattern(size: count)
      let step = UploadTo(try bucket.bucket("2026/ü +&'"))
      let result = try await step.process(try file(bytes, in: folder), in: try context())
      #expect(result.artifact.remoteURL?.absoluteString == "s3://\(bucket.name)/2026/%C3%BC%20%2B%26%27/film.bin")
      #expect(try await bucket.bytes("2026/ü +&'/film.bin") == bytes)
      #expect(try await bucket.openUploads() == 0)
    }

    @Test func `an object of another origin is kept, one with the same bytes counts as written`() async throws {
      let folder = try TemporaryFolder()
      for count in [1000, 6 << 20] {
        let bucket = try await TestBucket()
        let bytes = DownloadFixtures.pattern(size: count)
        let input = try file(bytes, in: folder)
        let step = UploadTo(try bucket.bucket())
        _ = try await step.process(input, in: try context())
        _ = try await step.process(input, in: try context())
        try await bucket.put("film.bin", [1, 2, 3])
        await #expect(throws: DownloadError.self) { _ = try await step.process(input, in: try context()) }
        #expect(try await bucket.bytes("film.bin") == [1, 2, 3])
        #expect(try await bucket.openUploads() == 0, "the upload of \(count) bytes was left behind")
        _ = try await UploadTo(try bucket.bucket(), onExisting: .replace).process(input, in: try context())
        #expect(try await bucket.bytes("film.bin") == bytes)
        // What an earlier fetch of the same download has uploaded.
        let other = try file(DownloadFixtures.pattern(size: count, seed: 2), named: "film.bin", in: folder)
        let earlier = Artifact(
          location: .remote(try #require(URL(string: "s3://\(bucket.name)/film.bin"))), name: "film.bin")
        _ = try await step.process(other, in: try context(replaces: earlier))
        #expect(try await bucket.bytes("film.bin") == DownloadFixtures.pattern(size: count, seed: 2))
      }
    }

    @Test func `a file with companions is refused before anything is uploaded`() async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let input = try file(DownloadFixtures.pattern(size: 1000), in: folder).withCompanion(
        at: folder.path("x"), suffix: ".png")
      await #expect {
        _ = try await UploadTo(try bucket.bucket()).process(input, in: try context())
      } throws: { ($0 as? DownloadError)?.code == .processing }
      #expect(try await bucket.openUploads() == 0)
    }

    @Test func `the next run sends only the parts that the storage does not have`() async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let bytes = DownloadFixtures.pattern(size: 23 << 20)
      let notes = Notes()
      let step = UploadTo(try bucket.bucket())
      // A process that ends while its follower sends the first three parts of five.
      let size = Int64(bytes.count)
      let follower = try #require(step.follower(in: try context(notes, following: bytes)))
      try await follow(follower, bytes.prefix(16 << 20))
      try await untilSent(2, to: bucket)
      try await follow(follower, [], discards: true)
      #expect(notes.last != nil)
      // The next one has one of the parts with other bytes, and follows again.
      var changed = bytes
      changed[0] ^= 1
      let next = try #require(step.follower(in: try context(notes, following: changed)) as? UploadFollower)
      try await follow(next, changed[...])
      let result = try await step.process(
        try file(changed, in: folder), in: try context(notes, follower: next, size: size))
      try await follow(next, [], discards: true)
      #expect(result.artifact.remoteURL != nil)
      #expect(try await bucket.bytes("film.bin") == changed)
      // All parts, the changed one again, and those that were under way when the follower ended.
      #expect(try bucket.partsSent() <= 5 + 1 + 2)
      // After the object: a run that was killed before the ledger knew it.
      let again = try await step.process(try file(changed, in: folder), in: try context(notes, size: size))
      #expect(again.artifact.remoteURL == result.artifact.remoteURL)
      #expect(try await bucket.openUploads() == 0)
    }

    @Test func `a step without its follower continues the upload`() async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let bytes = DownloadFixtures.pattern(size: 17 << 20)
      let notes = Notes()
      let step = UploadTo(try bucket.bucket())
      let follower = try #require(step.follower(in: try context(notes, following: bytes)))
      try await follow(follower, bytes.prefix(11 << 20))
      try await untilSent(1, to: bucket)
      try await follow(follower, [], discards: true)
      _ = try await step.process(try file(bytes, in: folder), in: try context(notes, size: Int64(bytes.count)))
      #expect(try await bucket.bytes("film.bin") == bytes)
      #expect(
        try await bucket.object("film.bin")?.token
          == UploadNote(notes.last, bucket: bucket.name, key: "film.bin")?.token)
    }

    @Test func `an upload that was aborted begins again`() async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let bytes = DownloadFixtures.pattern(size: 11 << 20)
      let notes = Notes()
      let step = UploadTo(try bucket.bucket())
      let follower = try #require(step.follower(in: try context(notes, following: bytes)))
      try await follow(follower, bytes[...])
      try await untilSent(1, to: bucket)
      try await follow(follower, [], discards: true)
      _ = try await bucket.bucket().abortUploads(startedBefore: Date() + 3600)
      #expect(try await bucket.openUploads() == 0)
      _ = try await step.process(try file(bytes, in: folder), in: try context(notes, size: Int64(bytes.count)))
      #expect(try await bucket.bytes("film.bin") == bytes)
    }

    @Test func `what the storage refuses is told with what to do`() async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let input = try file(DownloadFixtures.pattern(size: 1000), in: folder)
      func code(_ change: (inout S3.Configuration) -> Void, _ url: String? = nil) async throws -> DownloadError.Code? {
        let target = try S3(url ?? "s3://\(bucket.name)", bucket.configuration(change))
        do {
          _ = try await UploadTo(target).process(input, in: try context())
          return nil
        } catch let error as DownloadError { return error.code }
      }
      #expect(
        try await code { $0.credentials = .keys(id: "test:tester", secret: "wrong") } == .objectStorageCredentials)
      #expect(
        try await code {
          $0.credentials = .keys(id: bucket.server.guestAccessKey, secret: bucket.server.guestSecretKey)
        }
          == .objectStorageDenied)
      #expect(try await code({ _ in }, "s3://no-such-bucket") == .bucketNotFound)
      #expect(
        try await code {
          $0.credentials = .automatic; $0.environment["AWS_EC2_METADATA_DISABLED"] = "true"
          $0.environment["HOME"] = folder.path
        } == .objectStorageCredentials)
      #expect(
        try await code {
          $0.credentials = .profile("none"); $0.environment["HOME"] = folder.path
        } == .objectStorageCredentials)
      #expect(try await code { $0.region = "eu-central-1" } == nil, "the region that the storage names is used")
      #expect(try await code { _ in } == nil)
    }

    @Test func `an object that another program has replaced is kept, also by a refresh`() async throws {
      let bucket = try await TestBucket()
      let folder = try TemporaryFolder()
      let step = UploadTo(try bucket.bucket())
      let url = try #require(URL(string: "s3://\(bucket.name)/film.bin"))
      try await bucket.put("film.bin", [1, 2, 3])
      let input = try file(DownloadFixtures.pattern(size: 1000), in: folder)
      let earlier = Artifact(location: .remote(url), name: "film.bin")
      let error = await #expect(throws: DownloadError.self) {
        _ = try await step.process(input, in: try context(replaces: earlier))
      }
      #expect(error?.code == .alreadyExists)
      #expect(try await bucket.bytes("film.bin") == [1, 2, 3])
    }

    /// A storage that begins uploads, and refuses or delays their parts.
    private func storage(_ part: @escaping @Sendable () -> ScriptedReply) async throws -> ScriptedHTTPServer {
      try await ScriptedHTTPServer.start { request in
        switch request.method {
        case "HEAD": ScriptedReply(404)
        case "POST":
          ScriptedReply(
            200,
            body: .bytes(
              Array("<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>".utf8)))
        case "PUT": part()
        case "GET":
          ScriptedReply(
            200, body: .bytes(Array("<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>".utf8)))
        default: ScriptedReply(204)
        }
      }
    }

    private func step(_ server: ScriptedHTTPServer) throws -> UploadTo {
      UploadTo(try S3("s3://bucket", .scripted(server)))
    }

    @Test func `a storage that refuses parts ends the follower, and the step says why`() async throws {
      let server = try await storage {
        .refusal(403, "AccessDenied")
      }
      let folder = try TemporaryFolder()
      let bytes = DownloadFixtures.pattern(size: 30 << 20)
      let step = try step(server)
      let size = Int64(bytes.count)
      let follower = try #require(step.follower(in: try context(following: bytes)))
      try await follow(follower, bytes[...])
      let error = await #expect(throws: DownloadError.self) {
        _ = try await step.process(try file(bytes, in: folder), in: try context(follower: follower, size: size))
      }
      await #expect(throws: (any Error).self) { try await follow(follower, bytes[..<1]) }
      try await follow(follower, [], discards: true)
      #expect(error?.code == .objectStorageDenied)
      await server.shutdown()
    }

    @Test func `a pause does not wait for a storage that does not answer`() async throws {
      let gate = ServerGate()
      let server = try await storage { ScriptedReply([.hold(gate)]) }
      let bytes = DownloadFixtures.pattern(size: 30 << 20)
      let follower = try #require(try step(server).follower(in: try context(following: bytes)))
      try await follow(follower, bytes[...])
      try await server.until { $0.requests.contains { $0.method == "PUT" } }
      try await follow(follower, [], discards: true)
      gate.open()
      await server.shutdown()
    }
  }
#endif
