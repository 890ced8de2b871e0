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

/// What the libraries' errors mean: one table, each row with what to do about it.
enum HTTPFailure {
  /// Runs what may throw an error of the libraries.
  static func translating<R>(_ work: () throws -> R) throws -> R {
    do { return try work() } catch { throw downloadError(error, received: nil) }
  }

  /// - Parameter received: the bytes of the body so far; `nil` when the head had not come.
  static func downloadError(_ error: any Error, received: Int64?) -> any Error {
    switch error {
    case is DownloadError, is CancellationError: return error
    case let error as HTTPClientError: return client(error, received)
    case let error as HTTPParserError: return parser(error, received)
    case let error as NIOConnectionError: return connection(error)
    case let error as NIOSSLError: return tls(error, received)
    case is BoringSSLError, is NIOSSLExtraError: return handshake(error)
    case let error as ChannelError:
      if case .connectTimeout = error { return connectTimeout(error) }
      return broken(error, received)
    case is SocketAddressError:
      return DownloadError(.hostNotFound, "the host name could not be resolved: check its spelling", cause: error)
    case let error as IOError where isOutOfDescriptors(error): return outOfDescriptors(error)
    case let error as IOError where received == nil && isOffline(error):
      return offline("the server", reason(error), error)
    case let error as IOError:
      return DownloadError(
        .network, "the connection failed\(after(received)): \(reason(error)); trying again may help", cause: error)
    default:
      if String(reflecting: type(of: error)).hasPrefix("NIOSOCKS.") {
        return DownloadError(
          .network, "the SOCKS proxy refused the connection: \(error); check the proxy and the host", cause: error)
      }
      return DownloadError(
        .network, "the connection failed\(after(received)): \(error); trying again may help", cause: error)
    }
  }

  private static func client(_ error: HTTPClientError, _ received: Int64?) -> DownloadError {
    switch error {
    case .connectTimeout, .getConnectionFromPoolTimeout: connectTimeout(error)
    case .tlsHandshakeTimeout:
      DownloadError(
        .timedOut, "the TLS handshake took too long; try again later, or raise connectTimeLimit", cause: error)
    case .socksHandshakeTimeout, .httpProxyHandshakeTimeout:
      DownloadError(
        .timedOut, "the proxy took too long to connect; check the proxy, or raise connectTimeLimit", cause: error)
    case .deadlineExceeded:
      DownloadError(.timedOut, "the answer was not complete within the source's totalTimeLimit; raise it", cause: error)
    case .readTimeout, .writeTimeout:
      DownloadError(.timedOut, "the server stopped in the middle; try again later", cause: error)
    case .remoteConnectionClosed, .uncleanShutdown: broken(error, received)
    case .proxyAuthenticationRequired:
      DownloadError(
        .httpStatus, "the proxy wants a user name and a password: give them with the proxy", httpStatus: 407,
        cause: error)
    case .invalidProxyResponse:
      DownloadError(.network, "the proxy refused to connect to the server; check the proxy's rules", cause: error)
    case .alreadyShutdown, .cancelled: DownloadError(.shutDown, "the downloader was shut down", cause: error)
    case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath:
      DownloadError(.invalidRequest, "the URL cannot be asked for: \(error.shortDescription)", cause: error)
    default:
      DownloadError(.network, "the request failed\(after(received)): \(error.shortDescription)", cause: error)
    }
  }

  private static func parser(_ error: HTTPParserError, _ received: Int64?) -> DownloadError {
    switch error {
    case .invalidEOFState, .closedConnection: broken(error, received)
    case .headerOverflow:
      DownloadError(
        .invalidResponse, "the answer's header is longer than any sound one (80 KiB a field, 256 fields, 2 MiB)",
        cause: error)
    case .invalidChunkSize:
      DownloadError(.invalidResponse, "the answer's chunks are malformed\(after(received))", cause: error)
    case .invalidContentLength, .unexpectedContentLength:
      DownloadError(.invalidResponse, "the answer's Content-Length is malformed or contradicts itself", cause: error)
    case .unknown, .strictModeAssertion, .lfExpected:
      DownloadError(
        .invalidResponse,
        "the answer breaks the rules of HTTP\(after(received)), as by a line that ends without CR, or by Content-Length "
          + "beside Transfer-Encoding; ask the server's operator",
        cause: error)
    default:
      DownloadError(
        .invalidResponse, "the answer is not HTTP\(after(received)): \(error); check that the port is a web server's",
        cause: error)
    }
  }

  private static func connection(_ error: NIOConnectionError) -> DownloadError {
    let place = "\(error.host):\(error.port)"
    guard let first = error.connectionErrors.first else {
      return DownloadError(
        .hostNotFound, "the host name \(error.host) could not be resolved: check its spelling and the network",
        cause: error)
    }
    if error.connectionErrors.allSatisfy({ if case ChannelError.connectTimeout = $0.error { true } else { false } }) {
      return connectTimeout(error)
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
          + "not among the trust roots; set tls.trustRoots if it is your own",
        cause: error)
    }
    return DownloadError(
      .tls, "the TLS handshake failed: \(text.prefix(200)); check that the port speaks TLS 1.2 or later", cause: error)
  }

  private static func connectTimeout(_ error: any Error) -> DownloadError {
    DownloadError(
      .timedOut, "no connection within the source's connectTimeLimit; check host and network, or try again later",
      cause: error)
  }

  /// Ended too early: resumable, so it is the network's fault and not the file's.
  private static func broken(_ error: any Error, _ received: Int64?) -> DownloadError {
    let text =
      received.map { "the connection ended in the middle of the body, after \($0) bytes" }
      ?? "the connection was closed without an answer"
    return DownloadError(.network, "\(text); trying again may help", cause: error)
  }

  private static func after(_ received: Int64?) -> String { received.map { " after \($0) bytes" } ?? "" }

  private static func offline(_ place: String, _ why: String, _ error: any Error) -> DownloadError {
    DownloadError(
      .offline, "there is no way to \(place): \(why); check the network's cable, radio or routes", cause: error)
  }

  private static func outOfDescriptors(_ error: any Error) -> DownloadError {
    DownloadError(
      .tooManyOpenFiles,
      "no connection could be opened: too many files and connections are open; run fewer downloads at once, or raise "
        + "the limit (ulimit -n)", cause: error)
  }

  /// Whether it is this process, or this machine, that has as much open as it may.
  private static func isOutOfDescriptors(_ error: IOError) -> Bool { [EMFILE, ENFILE].contains(error.errnoCode) }

  /// Whether the request cannot have left this machine.
  private static func isOffline(_ error: IOError) -> Bool {
    [ENETUNREACH, ENETDOWN].contains(error.errnoCode)
  }

  /// The system's words, such as “Connection refused (errno 111)”, without the call's name before them.
  private static func reason(_ error: IOError) -> String {
    let text = error.description
    guard let start = text.ranges(of: ": ").first(where: { text[$0.upperBound...].first?.isUppercase ?? false })
    else { return text }
    let words = text[start.upperBound...].prefix { $0 != "(" && $0 != ")" }
    return "\(words.trimmingHTTPWhitespace) (errno \(error.errnoCode))"
  }
}
