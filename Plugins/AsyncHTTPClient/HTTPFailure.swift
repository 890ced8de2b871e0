#if AsyncHTTPClient
  import AsyncHTTPClient
  import DownpipeCore
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOSSL

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Maps the errors of the libraries to download errors whose messages suggest a remedy.
  enum HTTPFailure {
    /// Calls `work` and maps its error.
    static func translating<R>(_ work: () throws -> R) throws -> R {
      do { return try work() } catch { throw downloadError(error, received: nil) }
    }

    /// - Parameters:
    ///   - received: The number of body bytes so far; `nil` before the head of the response.
    ///   - limits: The configuration whose time limits the messages state.
    static func downloadError(
      _ error: any Error, received: Int64?, limits: AsyncHTTPClientSource.Configuration = .init()
    ) -> any Error {
      switch error {
      case is DownloadError, is CancellationError: return error
      case let error as HTTPClientError: return client(error, received, limits)
      case let error as HTTPParserError: return parser(error, received)
      case let error as NIOConnectionError: return connection(error, limits)
      case let error as NIOSSLError: return tls(error, received)
      case is BoringSSLError, is NIOSSLExtraError: return handshake(error)
      case let error as ChannelError:
        if case .connectTimeout = error { return connectTimeout(error, limits) }
        return broken(error, received)
      case is SocketAddressError:
        return DownloadError(.hostNotFound, "the host name could not be resolved: check its spelling", cause: error)
      case let error as IOError where isOutOfDescriptors(error): return outOfDescriptors(error)
      case let error as IOError where received == nil && isOffline(error):
        return offline("the server", reason(error), error)
      case let error as IOError:
        return DownloadError(
          .network, "the connection failed\(after(received)): \(reason(error)); a retry may help", cause: error)
      default:
        if String(reflecting: type(of: error)).hasPrefix("NIOSOCKS.") {
          return DownloadError(
            .network, "the SOCKS proxy refused the connection: \(error); check the proxy and the host", cause: error)
        }
        return DownloadError(
          .network, "the connection failed\(after(received)): \(error); a retry may help", cause: error)
      }
    }

    private static func client(
      _ error: HTTPClientError, _ received: Int64?, _ limits: AsyncHTTPClientSource.Configuration
    ) -> DownloadError {
      switch error {
      case .connectTimeout, .getConnectionFromPoolTimeout: connectTimeout(error, limits)
      case .tlsHandshakeTimeout:
        DownloadError(
          .timedOut, "the TLS handshake was not complete \(within(limits.connectTimeLimit)); try again later",
          cause: error)
      case .socksHandshakeTimeout, .httpProxyHandshakeTimeout:
        DownloadError(
          .timedOut,
          "there was no connection through the proxy \(within(limits.connectTimeLimit)); check the proxy, or try again "
            + "later", cause: error)
      case .deadlineExceeded:
        DownloadError(
          .timedOut,
          "the response was not complete \(within(limits.totalTimeLimit)); try again later, or allow more time",
          cause: error)
      case .readTimeout, .writeTimeout:
        DownloadError(.timedOut, "the server stopped sending; try again later", cause: error)
      case .remoteConnectionClosed, .uncleanShutdown: broken(error, received)
      case .proxyAuthenticationRequired:
        DownloadError(
          .httpStatus, "the proxy requires a user name and a password: set them in the proxy's credentials",
          httpStatus: 407,
          cause: error)
      case .invalidProxyResponse:
        DownloadError(
          .network, "the proxy refused to connect to the server; check the rules of the proxy", cause: error)
      case .alreadyShutdown, .cancelled: DownloadError(.shutDown, "the downloader was shut down", cause: error)
      case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath:
        DownloadError(.invalidRequest, "the URL is invalid: \(error.shortDescription)", cause: error)
      default:
        DownloadError(.network, "the request failed\(after(received)): \(error.shortDescription)", cause: error)
      }
    }

    private static func parser(_ error: HTTPParserError, _ received: Int64?) -> DownloadError {
      switch error {
      case .invalidEOFState, .closedConnection: broken(error, received)
      case .headerOverflow:
        DownloadError(
          .invalidResponse,
          "the header of the response exceeds the limits (80 KiB for a field, 256 fields, 2 MiB in total)",
          cause: error)
      case .invalidChunkSize:
        DownloadError(.invalidResponse, "the chunks of the response are malformed\(after(received))", cause: error)
      case .invalidContentLength, .unexpectedContentLength:
        DownloadError(
          .invalidResponse, "the Content-Length of the response is malformed or contradictory", cause: error)
      case .invalidHeaderToken:
        DownloadError(
          .invalidResponse,
          "a line in the header of the response is malformed: it has no colon, or characters that a field must not have; "
            + "ask the operator of the server", cause: error)
      case .unknown, .strictModeAssertion, .lfExpected:
        DownloadError(
          .invalidResponse,
          "the response violates HTTP\(after(received)), for example by a line that ends without CR, or by "
            + "Content-Length together with Transfer-Encoding; ask the operator of the server",
          cause: error)
      default:
        DownloadError(
          .invalidResponse,
          "the response is not HTTP\(after(received)): \(error); check that the port belongs to a web server",
          cause: error)
      }
    }

    private static func connection(_ error: NIOConnectionError, _ limits: AsyncHTTPClientSource.Configuration)
      -> DownloadError
    {
      let place = "\(error.host):\(error.port)"
      guard let first = error.connectionErrors.first else {
        return DownloadError(
          .hostNotFound, "the host name \(error.host) could not be resolved: check its spelling and the network",
          cause: error)
      }
      if error.connectionErrors.allSatisfy({ if case ChannelError.connectTimeout = $0.error { true } else { false } }) {
        return connectTimeout(error, limits)
      }
      if error.connectionErrors.contains(where: { ($0.error as? IOError).map(isOutOfDescriptors) ?? false }) {
        return outOfDescriptors(error)
      }
      let why = (first.error as? IOError).map(reason) ?? "\(first.error)"
      if error.connectionErrors.allSatisfy({ ($0.error as? IOError).map(isOffline) ?? false }) {
        return offline(place, why, error)
      }
      return DownloadError(
        .network, "no connection to \(place): \(why); check host, port and network, or try again later", cause: error)
    }

    private static func tls(_ error: NIOSSLError, _ received: Int64?) -> DownloadError {
      switch error {
      case .uncleanShutdown: broken(error, received)
      default: handshake(error)
      }
    }

    private static func handshake(_ error: any Error) -> DownloadError {
      let text = "\(error)"
      if text.contains("CERTIFICATE_VERIFY_FAILED") || error is NIOSSLExtraError
        || text.contains("unableToValidateCertificate")
      {
        return DownloadError(
          .tls,
          "the server's certificate is not trusted: it may be expired, for another host, or from an authority that is "
            + "not a trust root; add it to the trust roots if the authority is yours",
          cause: error)
      }
      return DownloadError(
        .tls, "the TLS handshake failed: \(text.prefix(200)); check that the port supports TLS 1.2 or later",
        cause: error
      )
    }

    private static func connectTimeout(_ error: any Error, _ limits: AsyncHTTPClientSource.Configuration)
      -> DownloadError
    {
      DownloadError(
        .timedOut,
        "there was no connection \(within(limits.connectTimeLimit)); check host and network, or try again later",
        cause: error)
    }

    private static func within(_ limit: Duration?) -> String {
      "within the time limit" + (limit.map { " of \($0.inSeconds)" } ?? "")
    }

    /// A connection that ended early: a network error, because the download can resume.
    private static func broken(_ error: any Error, _ received: Int64?) -> DownloadError {
      let text =
        received.map { "the connection ended during the body, after \($0) bytes" }
        ?? "the connection was closed without a response"
      return DownloadError(.network, "\(text); a retry may help", cause: error)
    }

    private static func after(_ received: Int64?) -> String { received.map { " after \($0) bytes" } ?? "" }

    private static func offline(_ place: String, _ why: String, _ error: any Error) -> DownloadError {
      DownloadError(
        .offline, "there is no route to \(place): \(why); check the network connection", cause: error)
    }

    private static func outOfDescriptors(_ error: any Error) -> DownloadError {
      DownloadError(
        .tooManyOpenFiles,
        "no connection could be opened: too many files and connections are open; run fewer downloads at once, or raise "
          + "the limit (ulimit -n)", cause: error)
    }

    /// Whether the limit of open files of the process or the machine is reached.
    private static func isOutOfDescriptors(_ error: IOError) -> Bool { [EMFILE, ENFILE].contains(error.errnoCode) }

    /// Whether the machine has no network.
    private static func isOffline(_ error: IOError) -> Bool {
      [ENETUNREACH, ENETDOWN].contains(error.errnoCode)
    }

    /// The system's message without the name of the call, such as “Connection refused (errno 111)”.
    private static func reason(_ error: IOError) -> String {
      let text = error.description
      guard let start = text.ranges(of: ": ").first(where: { text[$0.upperBound...].first?.isUppercase ?? false })
      else { return text }
      let words = text[start.upperBound...].prefix { $0 != "(" && $0 != ")" }
      return "\(words.trimmingHTTPWhitespace) (errno \(error.errnoCode))"
    }
  }
#endif
