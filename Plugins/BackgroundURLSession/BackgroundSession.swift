import DownpipeCore
import DownpipeURLSession
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A downloader's session whose transfers the system carries out: it opens a URL when the *last* byte has arrived.
struct BackgroundSession: SourceSession {
  let identifier: String
  let sessions: BackgroundSessions
  let channel: BackgroundChannel
  let configuration: URLSessionSource.Configuration

  /// Returns the session of an identifier; makes it on the first call in a process.
  ///
  /// - Parameter foundation: Makes Foundation's configuration; tests pass another kind of session.
  /// - Throws: ``DownloadError`` with `.inUse`, `.invalidPipeline`, `.permission`, `.noSpace` or `.storage`.
  static func start(
    _ provider: BackgroundProvider, _ configuration: URLSessionSource.Configuration,
    sessions: BackgroundSessions = .shared, foundation: @escaping @Sendable () -> URLSessionConfiguration
  ) async throws -> BackgroundSession {
    let identifier = provider.identifier
    let inbox = try BackgroundInbox.path(of: identifier, below: provider.inbox)
    let channel = try await sessions.attach(identifier) {
      let tasks = DownloadTaskSession(foundation)
      var options = BackgroundChannel.Options()
      options.handOverTimeLimit = provider.handOverTimeLimit
      options.callHandlers = { sessions.call($0) }
      return (try BackgroundChannel(inbox: BackgroundInbox(inbox), tasks: tasks, options: options), tasks)
    }
    return BackgroundSession(
      identifier: identifier, sessions: sessions, channel: channel, configuration: configuration)
  }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    try request.lease.check()
    let fields = try HTTPRequestFields.fields(for: request)
    // The system follows redirects itself.
    let first = try Redirects(request, fields: fields, rules: .init(maximum: 0))
    let condition = request.range == nil ? request.condition?.conditionField : nil
    let tag = try TransferTag(request, ifRange: fields["If-Range"], condition: condition?.value)
    var urlRequest = RequestURL.request(first)
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

  /// Releases the session. Its transfers continue, and the next start finds them.
  func stop() async { await sessions.detach(identifier, channel) }
}
