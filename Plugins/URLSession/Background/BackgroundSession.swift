import DownpipeCore
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The session of a downloader that the system transfers for in the background: it opens a URL when the *last* byte is there.
struct BackgroundSession: SourceSession {
  let identifier: String
  let sessions: BackgroundSessions
  let channel: BackgroundChannel
  let configuration: URLSessionSource.Configuration

  /// Takes the session of an identifier, or makes it.
  ///
  /// - Parameter foundation: Foundation's configuration: a background one, but for tests.
  /// - Throws: ``DownloadError`` with `.inUse`, `.invalidPipeline`, `.permission`, `.noSpace` or `.storage`.
  static func start(
    _ identifier: String, inbox: String?, _ configuration: URLSessionSource.Configuration,
    sessions: BackgroundSessions = .shared, foundation: @escaping @Sendable () -> URLSessionConfiguration
  ) async throws -> BackgroundSession {
    let inbox = try BackgroundInbox.path(of: identifier, below: inbox)
    let channel = try await sessions.attach(identifier) {
      let tasks = DownloadTaskSession(foundation)
      var options = BackgroundChannel.Options()
      options.handOverTimeLimit = configuration.handOverTimeLimit
      options.callHandlers = { sessions.call($0) }
      return (try BackgroundChannel(inbox: BackgroundInbox(inbox), tasks: tasks, options: options), tasks)
    }
    return BackgroundSession(
      identifier: identifier, sessions: sessions, channel: channel, configuration: configuration)
  }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    guard RequestURL.isSupported(request.url) else {
      throw DownloadError(.unsupportedURL, "URLSessionSource takes http and https URLs with a host only")
    }
    let fields = try HTTPRequestFields.fields(for: request)
    let tag = try TransferTag(request, ifRange: fields["If-Range"])
    var urlRequest = RequestURL.request(request.url, fields)
    urlRequest.timeoutInterval = configuration.idleTimeLimit / .seconds(1)
    switch try await channel.open(BackgroundOpening(tag, urlRequest)) {
    case .refusal(let answer, let tag):
      return try answer.reply(to: tag, size: 0, body: .empty)
    case .file(let file, let tag, let answer):
      do {
        return try answer.reply(to: tag, size: try file.size(), body: file.body)
      } catch {
        file.discard()
        throw error
      }
    }
  }

  /// Lets go of the session. What the system is transferring goes on, and is found at the next start.
  func stop() async { await sessions.detach(identifier, channel) }
}
