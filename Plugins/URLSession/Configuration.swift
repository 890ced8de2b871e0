package import DownpipeCore
package import Foundation

#if canImport(FoundationNetworking)
  package import FoundationNetworking
#endif

extension URLSessionSource {
  /// How a ``URLSessionSource`` connects, and its time limits.
  public struct Configuration: Sendable, Hashable {
    let base: SessionBase

    /// The longest wait for the head of a response, connecting included, 30 seconds by default. Each redirect starts
    /// it again.
    public var connectTimeLimit: Duration = .seconds(30)
    /// The longest time without a byte of the body, 60 seconds by default. Time spent in the sink does not count.
    public var idleTimeLimit: Duration = .seconds(60)
    /// The longest time from opening to the last byte; unlimited when `nil`.
    public var totalTimeLimit: Duration?
    /// How long an unread reply may block the delegate queue once 1 MiB of it is buffered, 2 seconds by
    /// default. Then it fails with `.network`.
    public var unreadTimeLimit: Duration = .seconds(2)
    /// The most redirects that are followed, 10 by default; with 0 a redirect is an answer without a file.
    ///
    /// Fields that are bound to the origin of the URL, such as `Authorization`, are not sent to another one; see
    /// `HeaderField.Scope`.
    public var maximumRedirects = 10
    /// Whether a redirect from `https` to `http` is followed. By default it fails with `.insecureRedirect`.
    public var allowsInsecureRedirects = false

    /// Foundation's default session: the system's settings and credentials.
    public static let `default` = Configuration(base: .default)
    /// Foundation's ephemeral session: nothing is kept on disk.
    public static let ephemeral = Configuration(base: .ephemeral)

    /// A configuration whose sessions another module makes.
    package init(_ provider: any SessionProvider) { self.init(base: .provided(provider)) }

    private init(base: SessionBase) { self.base = base }

    var summary: String {
      var parts: [String] =
        switch base {
        case .default: []
        case .ephemeral: ["ephemeral"]
        case .provided(let provider): [provider.summary]
        }
      let usual = Configuration(base: base)
      if connectTimeLimit != usual.connectTimeLimit { parts.append("connect within \(connectTimeLimit)") }
      if idleTimeLimit != usual.idleTimeLimit { parts.append("idle at most \(idleTimeLimit)") }
      if let totalTimeLimit { parts.append("\(totalTimeLimit) in all") }
      if maximumRedirects != usual.maximumRedirects { parts.append("at most \(maximumRedirects) redirects") }
      if allowsInsecureRedirects { parts.append("redirects from https to http") }
      return parts.joined(separator: ", ")
    }

    func sessionConfiguration(connectionsPerHost: Int) -> URLSessionConfiguration {
      let session: URLSessionConfiguration = base == .ephemeral ? .ephemeral : .default
      tune(session, connectionsPerHost: connectionsPerHost)
      return session
    }

    /// Sets what all sessions have in common.
    package func tune(_ session: URLSessionConfiguration, connectionsPerHost: Int) {
      // Admission decides how many transfers run against a host. Where redirects lead to one host, the session's own
      // limit would make transfers wait inside the session without a reason that the engine can report.
      session.httpMaximumConnectionsPerHost = min(max(1, connectionsPerHost), 10_000)
      // A cache would keep whole files, and could answer with stale bytes.
      session.urlCache = nil
      session.requestCachePolicy = .reloadIgnoringLocalCacheData
      // Only the fields of the request are sent.
      session.httpShouldSetCookies = false
      session.httpCookieAcceptPolicy = .never
      session.httpCookieStorage = nil
      // `TaskTransfer` applies the time limits, because it can tell a slow server from a slow sink.
      session.timeoutIntervalForRequest = Self.never
      session.timeoutIntervalForResource = Self.never
      #if canImport(FoundationNetworking)
        // Foundation would block its own queue to answer a challenge from its credential storage.
        session.urlCredentialStorage = nil
      #endif
    }

    /// A week, in seconds.
    package static let never: TimeInterval = 604_800
  }
}

/// Where the session of a source comes from.
enum SessionBase: Sendable, Hashable {
  case `default`
  case ephemeral
  case provided(any SessionProvider)

  static func == (left: SessionBase, right: SessionBase) -> Bool {
    switch (left, right) {
    case (.default, .default), (.ephemeral, .ephemeral): true
    case (.provided(let left), .provided(let right)): left.isEqual(to: right)
    default: false
    }
  }

  func hash(into hasher: inout Hasher) {
    switch self {
    case .default: hasher.combine(0)
    case .ephemeral: hasher.combine(1)
    case .provided(let provider): hasher.combine(provider)
    }
  }
}

/// Creates the sessions of a ``URLSessionSource`` in place of `DownpipeURLSession`: background sessions are a product of
/// their own.
package protocol SessionProvider: Sendable, Hashable {
  /// The part of the printed pipeline that describes the session.
  var summary: String { get }
  /// Starts the session of one downloader; see ``Source/start(in:)``.
  func start(
    _ configuration: URLSessionSource.Configuration, connectionsPerHost: Int
  ) async throws -> any SourceSession
}

extension SessionProvider {
  fileprivate func isEqual(to other: any SessionProvider) -> Bool { other as? Self == self }
}
