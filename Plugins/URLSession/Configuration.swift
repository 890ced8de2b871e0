import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLSessionSource {
  /// How a ``URLSessionSource`` connects and how long it waits.
  public struct Configuration: Sendable, Hashable {
    /// Which of Foundation's session configurations is the base; background sessions will be another.
    enum Base: Sendable, Hashable {
      case `default`
      case ephemeral
    }

    let base: Base
    /// The longest wait for the head of an answer, counted anew for each redirect. Connecting is part of it.
    public var connectTimeLimit: Duration = .seconds(30)
    /// The longest time in which no byte of a body arrives. The time that the sink takes does not count.
    public var idleTimeLimit: Duration = .seconds(60)
    /// The longest time from opening to the last byte; unlimited when `nil`.
    public var totalTimeLimit: Duration?
    /// How long a reply may wait to be read once 1 MiB of it has arrived, before it is ended.
    public var unreadTimeLimit: Duration = .seconds(2)
    /// The most redirects that are followed. A redirect from `https` to `http` never is, and one to another origin
    /// (scheme, host or port) loses `Authorization`, `Cookie` and `Host`.
    public var maximumRedirects = 10

    /// The system's settings and credentials.
    public static let `default` = Configuration(base: .default)
    /// Nothing that outlives the session.
    public static let ephemeral = Configuration(base: .ephemeral)

    private init(base: Base) { self.base = base }

    var summary: String {
      var parts: [String] = base == .ephemeral ? ["ephemeral"] : []
      let usual = Configuration(base: base)
      if connectTimeLimit != usual.connectTimeLimit { parts.append("connect within \(connectTimeLimit)") }
      if idleTimeLimit != usual.idleTimeLimit { parts.append("idle at most \(idleTimeLimit)") }
      if let totalTimeLimit { parts.append("\(totalTimeLimit) in all") }
      if maximumRedirects != usual.maximumRedirects { parts.append("at most \(maximumRedirects) redirects") }
      return parts.joined(separator: ", ")
    }

    /// The configuration for Foundation.
    func sessionConfiguration(connectionsPerHost: Int) -> URLSessionConfiguration {
      let session: URLSessionConfiguration = base == .ephemeral ? .ephemeral : .default
      // Admission decides how many run against a host; where redirects lead to one host, the session's own
      // limit would only make transfers wait inside of it, where nobody sees them.
      session.httpMaximumConnectionsPerHost = min(max(1, connectionsPerHost), 10_000)
      // A cache would keep whole films, and could answer with bytes that are out of date.
      session.urlCache = nil
      session.requestCachePolicy = .reloadIgnoringLocalCacheData
      // What is sent is what the request says.
      session.httpShouldSetCookies = false
      session.httpCookieAcceptPolicy = .never
      session.httpCookieStorage = nil
      // Time is kept by `Transfer`, which knows whether the server or the sink is slow.
      session.timeoutIntervalForRequest = Self.never
      session.timeoutIntervalForResource = Self.never
      #if canImport(FoundationNetworking)
        // Foundation's answer to a challenge from its storage would wait for its own queue.
        session.urlCredentialStorage = nil
      #endif
      return session
    }

    /// A week, in seconds.
    static let never: TimeInterval = 604_800
  }
}
