#if Curl
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import ObjectStorageServer
  import Synchronization

  @testable import DownpipeS3

  /// A new bucket at the server of the tests.
  struct TestBucket {
    let server: ObjectStorageServer
    let name = "b\(UInt64.random(in: 0...UInt64.max))"

    init() async throws {
      server = try ObjectStorageServer.shared.get()
      _ = try await client().send(S3Call(method: .put, bucket: name, body: MemoryBody(bytes: []), purpose: "a test"))
    }

    func configuration(_ change: (inout S3.Configuration) -> Void = { _ in }) -> S3.Configuration {
      var configuration = S3.Configuration()
      configuration.environment = [:]
      configuration.endpoint = URL(string: server.endpoint)
      configuration.region = server.region
      configuration.credentials = .keys(id: server.accessKey, secret: server.secretKey)
      configuration.partSize = 5 << 20
      configuration.connections.proxy = .none
      change(&configuration)
      return configuration
    }

    func client() throws -> S3Client { try S3Client(configuration()) }

    func bucket(_ prefix: String = "", _ change: (inout S3.Configuration) -> Void = { _ in }) throws -> S3 {
      try S3("s3://\(name)/\(prefix)", configuration(change))
    }

    /// The bytes of an object; `nil` if there is none.
    func bytes(_ key: String) async throws -> [UInt8]? {
      let call = S3Call(method: .get, bucket: name, key: key, purpose: "a test")
      let (_, response, failure) = try await client().open(call)
      if let failure {
        if failure.isMissing { return nil }
        throw failure
      }
      let bytes = Mutex<[UInt8]>([])
      try await response.push(
        into: { chunk in bytes.withLock { list in chunk.withUnsafeBytes { list.append(contentsOf: $0) } } },
        pace: .unlimited, limit: nil)
      return bytes.withLock { $0 }
    }

    func object(_ key: String) async throws -> MultipartUploads.Object? {
      try await MultipartUploads(client: client(), bucket: name).object(key)
    }

    func put(_ key: String, _ bytes: [UInt8]) async throws {
      var call = S3Call(method: .put, bucket: name, key: key, purpose: "a test")
      call.send(bytes)
      _ = try await client().send(call)
    }

    /// The ids of the uploads that were not completed.
    func openUploads() async throws -> Int {
      let answer = try await client().send(
        S3Call(method: .get, bucket: name, query: ["uploads": ""], purpose: "a test"))
      return try S3Document(answer.body).all("Upload").count
    }

    /// The requests that the server has logged for parts of this bucket.
    func partsSent() throws -> Int { try server.partsSent(to: name) }
  }
#endif
