#if Curl
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  @testable import DownpipeS3

  @Suite("Where keys come from, and when they are fetched again")
  struct CredentialTests {
    private static let tokenPath = "/latest/api/token"
    private static let rolePath = "/latest/meta-data/iam/security-credentials/"

    /// The answer of a service for keys.
    private static func keys(_ id: String, until end: Date? = nil) -> ScriptedReply {
      let expiration = end.map { ", \"Expiration\": \"\($0.formatted(.iso8601))\"" } ?? ""
      return ScriptedReply(
        200,
        body: .text("{\"AccessKeyId\": \"\(id)\", \"SecretAccessKey\": \"s\", \"Token\": \"t-\(id)\"\(expiration)}"))
    }

    /// The metadata of an instance, whose role is `reader writer`.
    private static func instance(_ request: ScriptedRequest) -> ScriptedReply {
      switch (request.method, request.path) {
      case ("PUT", tokenPath): ScriptedReply(200, body: .text("secret"))
      case ("GET", _) where request.headers["x-aws-ec2-metadata-token"] != "secret": ScriptedReply(401)
      case ("GET", rolePath): ScriptedReply(200, body: .text("reader writer\n"))
      case ("GET", rolePath + "reader%20writer"): keys("of-instance")
      default: ScriptedReply(404)
      }
    }

    /// The id of the key that the settings lead to.
    private func id(_ change: (inout S3.Configuration) throws -> Void) async throws -> String {
      var configuration = S3.Configuration()
      configuration.credentials = .automatic
      configuration.environment = ["HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"]
      try change(&configuration)
      return try #require(try await KeyCache(configuration).keys()).id
    }

    // MARK: The order

    @Test func `the first place that has keys is used`() async throws {
      let folder = try TemporaryFolder()
      let files = folder.path + "/.aws"
      try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
      try await withScriptedServer { request in
        if request.path == "/keys" {
          request.headers["Authorization"] == "pod" ? Self.keys("of-container") : ScriptedReply(401)
        } else {
          Self.instance(request)
        }
      } _: { server in
        var environment = [
          "AWS_ACCESS_KEY_ID": "of-environment", "AWS_SECRET_ACCESS_KEY": "s", "HOME": folder.path,
          "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.url("/keys").absoluteString,
          "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pod",
          "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url().absoluteString,
        ]
        try Data("[default]\naws_access_key_id = of-file\naws_secret_access_key=s\n".utf8)
          .write(to: URL(filePath: files + "/credentials"))
        try Data("[default]\naws_access_key_id = of-config\naws_secret_access_key = s\n[profile x]\n".utf8)
          .write(to: URL(filePath: files + "/config"))
        func found() async throws -> String { try await id { $0.environment = environment } }

        #expect(try await found() == "of-environment")
        environment["AWS_SECRET_ACCESS_KEY"] = ""
        #expect(try await found() == "of-file")
        try FileManager.default.removeItem(atPath: files + "/credentials")
        #expect(try await found() == "of-config")
        try FileManager.default.removeItem(atPath: files + "/config")
        #expect(server.requests.isEmpty, "services are not asked while files have keys")
        #expect(try await found() == "of-container")
        environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = nil
        #expect(try await found() == "of-instance")
        environment["AWS_EC2_METADATA_DISABLED"] = "TRUE"
        let error = await #expect(throws: DownloadError.self) { _ = try await found() }
        #expect(error?.code == .objectStorageCredentials)
        #expect(error?.message.contains("AWS_ACCESS_KEY_ID") == true)
      }
    }

    @Test func `a token in a file is read, without the end of its line`() async throws {
      let folder = try TemporaryFolder()
      let path = folder.path + "/token"
      try Data("pod\n".utf8).write(to: URL(filePath: path))
      try await withScriptedServer { request in
        request.headers["Authorization"] == "pod" ? Self.keys("k") : ScriptedReply(401)
      } _: { server in
        let found = try await id {
          $0.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.url("/keys").absoluteString
          $0.environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = path
        }
        #expect(found == "k")
      }
    }

    @Test(arguments: [
      "http://192.0.2.1/keys", "http://localhost.example.org/keys", "ftp://localhost/keys", "/keys",
      "http://127.0.0.1@192.0.2.1/",
    ])
    func `a service of another machine is not asked in the clear`(url: String) async throws {
      let error = await #expect(throws: DownloadError.self) {
        _ = try await id { $0.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url }
      }
      #expect(error?.code == .objectStorageCredentials)
      #expect(error?.message.contains("not used") == true)
    }

    @Test(arguments: [
      ("no JSON", "keys"), (#"{"Code": "AssumeRoleUnauthorizedAccess"}"#, "role"),
      (#"{"AccessKeyId": "a"}"#, "role"), (#"{"AccessKeyId": "a\r\nX: y", "SecretAccessKey": "b"}"#, "cannot be used"),
    ])
    func `a service that has something else than keys is told`(answer: String, says: String) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text(answer))
      } _: { server in
        let error = await #expect(throws: DownloadError.self) {
          _ = try await id { $0.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.url().absoluteString }
        }
        #expect(error?.code == .objectStorageCredentials)
        #expect(error?.message.contains(says) == true)
      }
    }

    @Test func `an instance without a role has no keys, one whose service is disturbed says so`() async throws {
      for (status, expected) in [(404, DownloadError.Code.objectStorageCredentials), (500, .invalidResponse)] {
        try await withScriptedServer { request in
          request.method == "PUT" ? ScriptedReply(200, body: .text("secret")) : ScriptedReply(status)
        } _: { server in
          let error = await #expect(throws: DownloadError.self) {
            _ = try await id {
              $0.environment = ["HOME": "/nonexistent"]
              $0.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.url().absoluteString
            }
          }
          #expect(error?.code == expected)
        }
      }
    }

    @Test func `a service that sends without end is left`() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .pattern(size: 1 << 40))
      } _: { server in
        await #expect(throws: DownloadError.self) {
          _ = try await id { $0.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.url().absoluteString }
        }
        #expect(server.activity.bytesSent < 64 << 20)
      }
    }

    // MARK: Their end

    /// A service for keys that numbers them, and a storage that takes them.
    private func withKeys(
      living lifetime: TimeInterval?, service: @escaping @Sendable (Int) -> ScriptedReply? = { _ in nil },
      storage: @escaping @Sendable (ScriptedRequest) -> ScriptedReply? = { _ in nil },
      _ body: (ScriptedHTTPServer, S3Client, VirtualTime) async throws -> Void
    ) async throws {
      let time = VirtualTime()
      let keys = try await ScriptedHTTPServer.start { request in
        service(request.number) ?? Self.keys("k\(request.number)", until: lifetime.map { time.date + $0 })
      }
      let objects = try await ScriptedHTTPServer.start { storage($0) ?? ScriptedReply(200) }
      try await withCleanup {
        await keys.shutdown()
        await objects.shutdown()
      } _: {
        let client = try S3Client(
          .scripted(objects) {
            $0.time = time
            $0.credentials = .automatic
            $0.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = keys.url().absoluteString
          })
        try await body(objects, client, time)
        await client.stop()
      }
    }

    @Test func `keys are fetched again five minutes before they expire`() async throws {
      try await withKeys(living: 3600) { objects, client, time in
        _ = try await client.send(.ofTest)
        time.advance(by: .seconds(54 * 60))
        _ = try await client.send(.ofTest)
        time.advance(by: .seconds(2 * 60))
        for _ in 1...2 { _ = try await client.send(.ofTest) }
        #expect(objects.requests.map(\.keyID) == ["k1", "k1", "k2", "k2"])
        #expect(objects.requests.map { $0.headers["x-amz-security-token"] } == ["t-k1", "t-k1", "t-k2", "t-k2"])
      }
    }

    @Test func `keys are used to their end while the service is disturbed, and not longer`() async throws {
      try await withKeys(living: 3600, service: { $0 > 1 ? ScriptedReply(500) : nil }) { objects, client, time in
        _ = try await client.send(.ofTest)
        time.advance(by: .seconds(59 * 60))
        _ = try await client.send(.ofTest)
        #expect(objects.requests.map(\.keyID) == ["k1", "k1"])
        time.advance(by: .seconds(2 * 60))
        let error = await #expect(throws: DownloadError.self) { _ = try await client.send(.ofTest) }
        #expect(error?.message.contains("status 500") == true)
        #expect(objects.requests.count == 2, "expired keys are not sent")
      }
    }

    @Test(arguments: ["ExpiredToken", "TokenRefreshRequired", "InvalidToken"])
    func `keys that the storage refuses as too old are fetched again once`(code: String) async throws {
      try await withKeys(living: nil, storage: { $0.keyID == "k1" ? .refusal(400, code) : nil }) { objects, client, _ in
        _ = try await client.send(.ofTest)
        #expect(objects.requests.map(\.keyID) == ["k1", "k2"])
      }
      try await withKeys(living: nil, storage: { _ in .refusal(400, code) }) { objects, client, _ in
        let failure = await #expect(throws: S3Failure.self) { _ = try await client.send(.ofTest) }
        #expect(failure?.error("a test", bucket: "b").code == .objectStorageCredentials)
        #expect(objects.requests.map(\.keyID) == ["k1", "k2"])
      }
    }

    @Test func `many requests wait for one search`() async throws {
      try await withKeys(living: 3600) { objects, client, _ in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 1...20 { group.addTask { _ = try await client.send(.ofTest) } }
          try await group.waitForAll()
        }
        #expect(Set(objects.requests.map(\.keyID)) == ["k1"])
      }
    }
  }
#endif
