#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import Foundation
  import Synchronization

  /// Looks for keys where AWS's tools do, in their order.
  struct KeySearch: Sendable {
    private static let metadataService = "http://169.254.169.254"
    private static let containerService = "http://169.254.170.2"
    /// A service of the same machine answers at once; without one, the packets go nowhere.
    private static let patience = Duration.seconds(2)
    private static let longestAnswer: Int64 = 64 << 10

    private let configuration: S3.Configuration
    private let files: ProfileFiles

    init(_ configuration: S3.Configuration, _ files: ProfileFiles) {
      self.configuration = configuration
      self.files = files
    }

    private func variable(_ name: String) -> String? {
      configuration.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// - Throws: `DownloadError` with `.objectStorageCredentials` if there are none; `CancellationError`.
    func keys() async throws -> S3Keys {
      switch configuration.credentials {
      case .keys(let id, let secret, let token):
        let keys = S3Keys(id: id, secret: secret, token: token)
        try keys.check("the settings")
        return keys
      case .profile(let name):
        guard let keys = files.keys else {
          throw DownloadError.credentials(
            "the profile “\(name.escaped)” has no keys: check \(files.credentialsPath) and \(files.configPath)")
        }
        try keys.check("the profile \(name)")
        return keys
      case .automatic, .anonymous: return try await automatic()
      }
    }

    private func automatic() async throws -> S3Keys {
      if let id = variable("AWS_ACCESS_KEY_ID"), let secret = variable("AWS_SECRET_ACCESS_KEY") {
        let keys = S3Keys(id: id, secret: secret, token: variable("AWS_SESSION_TOKEN"))
        try keys.check("the environment")
        return keys
      }
      if let keys = files.keys {
        try keys.check("the profile \(files.profile)")
        return keys
      }
      if let keys = try await ofContainer() { return keys }
      if variable("AWS_EC2_METADATA_DISABLED")?.lowercased() != "true", let keys = try await ofInstance() {
        return keys
      }
      throw DownloadError.credentials(
        "there are no keys for the object storage: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write them to "
          + "\(files.credentialsPath), give the instance a role, or give them in the settings")
    }

    /// The service of a container: ECS and EKS Pod Identity.
    private func ofContainer() async throws -> S3Keys? {
      let service: String
      if let path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        service = Self.containerService + path
      } else if let full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
        service = full
      } else {
        return nil
      }
      guard let url = URL(string: service), url.isHTTP, Self.isTrusted(url) else {
        throw DownloadError.credentials(
          "the service for keys that the environment names is not used: it is not on this machine and not https")
      }
      var fields = HeaderFields()
      var token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
      if let path = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        token = (try? String(contentsOfFile: path, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      if let token { fields["Authorization"] = token }
      return try S3Keys(document: try await ask(.get, service, fields), from: "the service of the container")
    }

    /// Keys are not asked of other machines in the clear.
    private static func isTrusted(_ url: URL) -> Bool {
      url.scheme?.lowercased() == "https"
        || [
          "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "fd00:ec2::23", "localhost", "127.0.0.1", "::1", "[::1]",
        ]
        .contains(url.host() ?? "")
    }

    /// The metadata of an instance of EC2, version 2; `nil` if there is no such service, or the instance has no role.
    private func ofInstance() async throws -> S3Keys? {
      let base = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? Self.metadataService
      let path = base + (base.hasSuffix("/") ? "" : "/") + "latest/"
      let credentials = path + "meta-data/iam/security-credentials/"
      let token: [UInt8]
      do {
        token = try await ask(.put, path + "api/token", ["x-aws-ec2-metadata-token-ttl-seconds": "21600"])
      } catch let error as DownloadError
        where [.network, .offline, .timedOut, .hostNotFound, .fileNotFound].contains(error.code)
      {
        // Not on an instance. One that answers, but not now, has another code.
        return nil
      }
      let fields: HeaderFields = ["x-aws-ec2-metadata-token": String(decoding: token, as: UTF8.self)]
      let list: [UInt8]
      // An instance without a role.
      do { list = try await ask(.get, credentials, fields) } catch let error as DownloadError
        where error.code == .fileNotFound
      { return nil }
      guard let role = String(decoding: list, as: UTF8.self).split(whereSeparator: \.isNewline).first else {
        return nil
      }
      return try S3Keys(
        document: try await ask(.get, credentials + ObjectLocation.encoded(role), fields),
        from: "the metadata service of the instance")
    }

    private func ask(_ method: HTTPOrder.Method, _ url: String, _ fields: HeaderFields) async throws -> [UInt8] {
      var settings = HTTPSource.Configuration()
      settings.proxy = .none
      settings.connectTimeLimit = Self.patience
      settings.idleTimeLimit = Self.patience
      let service = MetadataService(try CurlThread("downpipe.s3.keys", settings.curlSettings))
      guard fields.fields.allSatisfy(\.isValid) else {
        throw DownloadError.credentials("the token for the service of keys has other characters than a field may have")
      }
      let response = PendingResponse(service.thread, of: service)
      let head = try await response.start { id in
        Order(
          id: id, url: url, deadline: .now + Self.patience * 5,
          request: HTTPOrder(
            method, fields: fields, body: method == .put ? MemoryBody(bytes: []) : nil, version: .http1Only))
      }
      let bytes = Mutex<[UInt8]>([])
      try await response.push(
        into: { chunk in bytes.withLock { list in chunk.withUnsafeBytes { list.append(contentsOf: $0) } } },
        pace: .unlimited, limit: Self.longestAnswer)
      guard head.status == 200 else {
        let text = "the service for keys at \(url) has answered with status \(head.status)"
        if head.status == 429 || head.status >= 500 {
          throw DownloadError(.invalidResponse, text + "; a retry may help")
        }
        throw head.status == 404 ? DownloadError(.fileNotFound, text) : .credentials(text)
      }
      return bytes.withLock { $0 }
    }
  }

  /// The thread of one request to a service, which ends with it.
  private final class MetadataService: Sendable {
    let thread: CurlThread

    init(_ thread: CurlThread) { self.thread = thread }

    deinit { thread.abandon() }
  }
#endif
