#if Curl
  import DownpipeCore
  import DownpipeFiles
  import DownpipeScheduling
  import DownpipeTesting
  import Foundation
  import Synchronization
  import Testing

  @testable import DownpipeS3

  @Suite("S3Source, with a real server")
  struct S3SourceTests {
    private func read(_ reply: SourceReply) async throws -> [UInt8] {
      let bytes = Mutex<[UInt8]>([])
      try await reply.body.forEachArray { chunk in bytes.withLock { $0 += chunk } }
      return bytes.withLock { $0 }
    }

    @Test func `ranges and conditions`() async throws {
      let bucket = try await TestBucket()
      let content = DownloadFixtures.pattern(size: 100_000)
      try await bucket.put("a b/ü.bin", content)
      let session = try await S3Source(bucket.configuration()).start(in: SourceContext())
      let url = try #require(URL(string: "s3://\(bucket.name)/a%20b/%C3%BC.bin"))
      let whole = try await session.open(SourceRequest(url: url))
      #expect(whole.coverage == .whole && whole.length == .known(100_000))
      #expect(whole.suggestedName == "ü.bin")
      let validator = try #require(whole.validator)
      #expect(try await read(whole) == content)
      let part = try await session.open(
        SourceRequest(url: url, range: RequestedRange(from: 10, to: 20), validator: validator))
      #expect(part.coverage == .range(10..<20, total: .known(100_000)))
      #expect(try await read(part) == Array(content[10..<20]))
      #expect(try await session.open(SourceRequest(url: url, condition: validator)).coverage == .none(.notModified))
      try await bucket.put("a b/ü.bin", DownloadFixtures.pattern(size: 100_000, seed: 2))
      let error = await #expect(throws: DownloadError.self) {
        _ = try await session.open(SourceRequest(url: url, range: RequestedRange(from: 10), validator: validator))
      }
      #expect(error?.code == .contentChanged)
      let behind = try await session.open(SourceRequest(url: url, range: RequestedRange(from: 200_000)))
      #expect(
        behind.coverage == .none(.rangeNotSatisfiable(total: .known(100_000)))
          || behind.coverage == .none(.rangeNotSatisfiable(total: .unknown)))
      await session.stop()
    }

    @Test func `a missing object is an error with its status`() async throws {
      let bucket = try await TestBucket()
      let session = try await S3Source(bucket.configuration()).start(in: SourceContext())
      do {
        _ = try await session.open(SourceRequest(url: try #require(URL(string: "s3://\(bucket.name)/none"))))
        Issue.record("there is no such object")
      } catch let error as DownloadError {
        #expect(error.code == .httpStatus && error.httpStatus == 404)
        #expect(error.message.contains("NoSuchKey"))
      }
      await session.stop()
    }

    @Test func `from one bucket into another by a downloader`() async throws {
      let bucket = try await TestBucket()
      let target = try await TestBucket()
      let content = DownloadFixtures.pattern(size: 20 << 20)
      try await bucket.put("big.bin", content)
      let folder = try TemporaryFolder()
      let downloader = try await Downloader {
        S3Source(bucket.configuration())
        FileStore(folder.path)
        UploadTo(try target.bucket("copies"))
      }
      let download = try await downloader.add(
        DownloadRequest(try #require(URL(string: "s3://\(bucket.name)/big.bin"))))
      let artifact = try await download.value
      #expect(artifact.remoteURL?.absoluteString == "s3://\(target.name)/copies/big.bin")
      #expect(try await target.bytes("copies/big.bin") == content)
      #expect(!FileManager.default.fileExists(atPath: folder.path + "/big.bin"))
      await downloader.shutdown()
    }
  }
#endif
