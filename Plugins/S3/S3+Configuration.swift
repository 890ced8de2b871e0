#if LIBCURL
  public import DownpipeCore
  public import DownpipeHTTP
  public import Foundation

  extension S3 {
    /// The settings of an object storage.
    public struct Configuration: Sendable {
      /// The region of the bucket, such as `eu-central-1`; `nil`, the default, for that of `AWS_REGION`,
      /// `AWS_DEFAULT_REGION` or the profile, and otherwise `us-east-1`. If the storage names another region for a bucket,
      /// that one is used.
      public var region: String?

      /// The URL of a storage other than AWS, `http:` or `https:` with host and port; `nil`, the default, for that of
      /// `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, and otherwise AWS.
      public var endpoint: URL?

      /// How URLs name the bucket; ``Addressing/automatic`` by default.
      public var addressing = Addressing.automatic

      /// Where keys come from; ``Credentials/automatic`` by default.
      public var credentials = Credentials.automatic

      /// The size of a part, in bytes: 8 MiB by default, at least 5 MiB. Parts are larger if a file would have more than
      /// 10,000. Smaller files are uploaded in one request.
      public var partSize: Int64 = 8 << 20

      /// The parts of one file that are sent at once; 2 by default.
      public var partsAtOnce = 2

      /// How often a request is sent that may succeed later; 5 by default.
      public var attempts = 5

      /// Fields for every object, such as `x-amz-storage-class`, `x-amz-server-side-encryption`, `Cache-Control` or
      /// `x-amz-meta-…`; none by default. libcurl cannot sign a field beside another one whose name is the same and goes on
      /// with “-”.
      public var objectHeaders = HeaderFields()

      /// Proxy, TLS and time limits of the connections. What concerns redirects, log-ins and cookies has no effect.
      public var connections = HTTPSource.Configuration()

      /// The clock for pauses and for the age of credentials.
      package var time: any TimeSource = SystemTime()

      /// The time of signatures in place of the present, for tests. libcurl 7.88 sends such a time twice.
      var signingDate: Date?

      /// The variables of the environment.
      package var environment = ProcessInfo.processInfo.environment

      /// Creates settings with the default values.
      public init() {}
    }

    /// How URLs name the bucket.
    public enum Addressing: Sendable, Hashable {
      /// In the host name with AWS, unless the bucket's name has a dot; in the path with other storages.
      case automatic
      /// In the path: `https://host/bucket/key`.
      case path
      /// In the host name: `https://bucket.host/key`.
      case hostName
    }

    /// Where the keys for signatures come from.
    public enum Credentials: Sendable, Hashable {
      /// From the first place that has some, as AWS's own tools look for them: `AWS_ACCESS_KEY_ID` and
      /// `AWS_SECRET_ACCESS_KEY` with `AWS_SESSION_TOKEN`; the profile `AWS_PROFILE` (`default`) of the files
      /// `~/.aws/credentials` and `~/.aws/config`; the container's service (ECS, EKS Pod Identity); the metadata of the
      /// instance (EC2, version 2), unless `AWS_EC2_METADATA_DISABLED` is `true`. Keys that expire are fetched again five
      /// minutes before.
      case automatic
      /// The profile of the files of AWS's tools.
      case profile(String)
      /// These keys, with a token if they are temporary.
      case keys(id: String, secret: String, token: String? = nil)
      /// Unsigned requests, for public buckets.
      case anonymous
    }
  }

  extension S3.Configuration {
    /// Rejects settings that contradict each other.
    func check() throws(DownloadError) {
      if let endpoint {
        guard endpoint.isHTTP, endpoint.user == nil, endpoint.query == nil, ["", "/"].contains(endpoint.path) else {
          throw DownloadError(
            .invalidPipeline,
            "the endpoint \(endpoint.redacted) cannot be used: it is http:// or https:// with a host and a port")
        }
      }
      guard (5 << 20)...(5 << 30) ~= partSize else {
        throw DownloadError(.invalidPipeline, "a part has 5 MiB to 5 GiB, and not \(partSize) bytes")
      }
      guard 1...64 ~= partsAtOnce, attempts >= 1 else {
        throw DownloadError(.invalidPipeline, "1 to 64 parts are sent at once, and each is tried at least once")
      }
      if let field = objectHeaders.fields.first(where: { !$0.isValid }) {
        throw DownloadError(.invalidPipeline, "the header field “\(field.name.prefix(64).escaped)” is malformed")
      }
      let names = objectHeaders.fields.map { $0.name.lowercased() }
      if let name = names.first(where: { name in names.contains { $0.hasPrefix(name + "-") } }) {
        throw DownloadError(
          .invalidPipeline,
          "libcurl cannot sign the field \(name) beside one whose name goes on with “-”: leave one of them to the settings of "
            + "the bucket")
      }
      if let region, region.isEmpty || !region.utf8.allSatisfy(\.isUnreserved) {
        throw DownloadError(
          .invalidPipeline, "“\(region.prefix(64).escaped)” is no region: one is such as eu-central-1")
      }
    }
  }

  extension UInt8 {
    /// Whether the byte is itself in a URL (RFC 3986 §2.3), and in the form that is signed.
    var isUnreserved: Bool {
      switch self {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        true
      default: false
      }
    }
  }
#endif
