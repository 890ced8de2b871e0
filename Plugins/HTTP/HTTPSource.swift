#if LIBCURL
  import CCurl
  public import DownpipeCore
  public import Foundation

  /// Fetches `http:` and `https:` URLs with libcurl. This is a placeholder, which opens nothing yet.
  public struct HTTPSource: Source, SourceSession {
    /// The settings of the source.
    public let configuration: Configuration

    /// Creates a source with the given settings.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Creates a source whose default settings the closure changes.
    public init(_ configure: (inout Configuration) -> Void) {
      var configuration = Configuration()
      configure(&configuration)
      self.init(configuration)
    }

    /// Returns whether `url` is an `http:` or `https:` URL.
    public func accepts(_ url: URL) -> Bool { ["http", "https"].contains(url.scheme?.lowercased()) }

    /// Throws an error.
    public func open(_ request: SourceRequest) async throws -> SourceReply {
      throw DownloadError(.unsupportedURL, "this source opens nothing yet (libcurl \(LIBCURL_VERSION))")
    }
  }

  extension HTTPSource {
    /// The settings of an ``HTTPSource``.
    public struct Configuration: Sendable, Hashable {
      /// The longest wait for a connection.
      public var connectTimeLimit: Duration = .seconds(30)
      /// The longest wait for the next byte from the server.
      public var idleTimeLimit: Duration? = .seconds(60)
      /// The longest time for a whole response.
      public var totalTimeLimit: Duration?
      /// The most redirects that are followed for one request.
      public var maximumRedirects = 10
      /// The proxy.
      public var proxy: Proxy?
      /// The versions of HTTP that are offered.
      public var httpVersion: HTTPVersion = .automatic
      /// The trust roots.
      public var tls = TLS()
      /// The `User-Agent` of requests without one.
      public var userAgent: String?

      /// Creates a configuration with the default values.
      public init() {}
    }

    /// The versions of HTTP that a source offers.
    public enum HTTPVersion: Sendable, Hashable {
      /// HTTP/2 over TLS when the server supports it, otherwise HTTP/1.1.
      case automatic
      /// Always HTTP/1.1.
      case http1Only
    }

    /// The proxy that a source connects through.
    public struct Proxy: Sendable, Hashable {
      /// Parses the URL of a proxy.
      /// - Throws: `DownloadError` with `.invalidRequest`.
      public init(url text: String) throws(DownloadError) {}
    }

    /// The TLS settings of a source.
    public struct TLS: Sendable, Hashable {
      /// Certificates in PEM format.
      public enum PEM: Sendable, Hashable {
        /// The PEM text.
        case text(String)
        /// The path of a file.
        case file(String)
      }

      /// The certificate authorities that a source trusts.
      public enum TrustRoots: Sendable, Hashable {
        /// The authorities that the system trusts.
        case system
        /// The authorities that the system trusts, and the given ones.
        case systemAnd(PEM)
        /// Only the given authorities.
        case only(PEM)
      }

      /// The certificate authorities that are trusted.
      public var trustRoots: TrustRoots = .system

      /// Creates the default settings.
      public init() {}
    }
  }
#endif
