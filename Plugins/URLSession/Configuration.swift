import DownpipeCore
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLSessionSource {
  /// How a ``URLSessionSource`` connects and how long it waits.
  public struct Configuration: Sendable, Hashable {
    /// Which of Foundation's session configurations is the base.
    enum Base: Sendable, Hashable {
      case `default`
      case ephemeral
      case background(identifier: String, inbox: String?)
    }

    let base: Base
    /// The longest wait for the head of an answer, counted anew for each redirect. Connecting is part of it. In the
    /// background the system decides.
    public var connectTimeLimit: Duration = .seconds(30)
    /// The longest time in which no byte of a body arrives. The time that the sink takes does not count.
    public var idleTimeLimit: Duration = .seconds(60)
    /// The longest time from opening to the last byte; unlimited when `nil`.
    public var totalTimeLimit: Duration?
    /// How long a reply may wait to be read once 1 MiB of it has arrived, before it is ended.
    public var unreadTimeLimit: Duration = .seconds(2)
    /// The most redirects that are followed. A redirect from `https` to `http` never is, and one to another origin
    /// (scheme, host or port) loses `Authorization`, `Cookie` and `Host`. In the background the system follows
    /// redirects by its own rules.
    public var maximumRedirects = 10
    /// Whether the system may choose a good time for the transfers, such as when it charges on Wi-Fi. Background only.
    public var isDiscretionary = false
    /// How long the app's completion handler is held back for downloads to take what has arrived; files that
    /// nobody takes (of a paused download, say) wait in the inbox. Background only.
    public var handOverTimeLimit: Duration = .seconds(10)

    /// The system's settings and credentials.
    public static let `default` = Configuration(base: .default)
    /// Nothing that outlives the session.
    public static let ephemeral = Configuration(base: .ephemeral)

    /// A session whose transfers the system carries on while the app is suspended, or has been ended by the
    /// system. On Apple platforms only: elsewhere starting a downloader with it throws `.invalidPipeline`.
    ///
    /// See ``URLSessionSource/handleBackgroundEvents(identifier:completion:)`` for what the app does.
    /// - Parameters:
    ///   - identifier: names the session, the same at every start of the app. One downloader a process uses it.
    ///   - inbox: the folder, made if missing, in which finished files wait for their downloads. Below it each
    ///     identifier has a folder of its own. By default it is in the user's folder for caches. On the file system
    ///     of the storage files are moved and not copied.
    public static func background(_ identifier: String, inbox: String? = nil) -> Configuration {
      Configuration(base: .background(identifier: identifier, inbox: inbox))
    }

    private init(base: Base) { self.base = base }

    var summary: String {
      var parts: [String] =
        switch base {
        case .default: []
        case .ephemeral: ["ephemeral"]
        case .background(let identifier, _): ["background “\(identifier.prefix(100).escaped)”"]
        }
      if isDiscretionary { parts.append("when the system likes") }
      let usual = Configuration(base: base)
      if connectTimeLimit != usual.connectTimeLimit { parts.append("connect within \(connectTimeLimit)") }
      if idleTimeLimit != usual.idleTimeLimit { parts.append("idle at most \(idleTimeLimit)") }
      if let totalTimeLimit { parts.append("\(totalTimeLimit) in all") }
      if maximumRedirects != usual.maximumRedirects { parts.append("at most \(maximumRedirects) redirects") }
      return parts.joined(separator: ", ")
    }

    /// The configuration for Foundation, of a session in the foreground.
    func sessionConfiguration(connectionsPerHost: Int) -> URLSessionConfiguration {
      let session: URLSessionConfiguration = base == .ephemeral ? .ephemeral : .default
      tune(session, connectionsPerHost: connectionsPerHost)
      return session
    }

    /// Sets what all sessions have in common.
    func tune(_ session: URLSessionConfiguration, connectionsPerHost: Int) {
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
    }

    /// A week, in seconds.
    static let never: TimeInterval = 604_800
  }
}
