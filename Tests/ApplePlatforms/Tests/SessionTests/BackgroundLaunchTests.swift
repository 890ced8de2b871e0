import AppleFoundation
import DownpipeCore
import DownpipeURLSession
import Fixtures
import Testing

@testable import DownpipeBackgroundURLSession

/// Background sessions from the app's side, with the lines that only Apple's systems run. The system is ``Daemon``.
@Suite(.timeLimit(.minutes(5)))
struct BackgroundLaunchTests {
  private let identifier = "org.example.\(UUID().uuidString)"
  private let folder: TemporaryFolder
  private let request: SourceRequest
  private let content = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
  private let fields = ["Content-Length": "50000", "ETag": "\"v1\""]

  init() throws {
    folder = try TemporaryFolder()
    request = SourceRequest(url: try #require(URL(string: "https://example.org/film")), id: "film")
  }

  private var source: URLSessionSource {
    URLSessionSource(.background(identifier, inbox: folder.path, isDiscretionary: true))
  }

  /// A task that an earlier run of the app started for the request.
  private func earlier(_ fate: Daemon.Fate, number: Int = 7, for request: SourceRequest? = nil) throws -> Daemon.Earlier
  {
    let request = request ?? self.request
    return Daemon.Earlier(
      number, URLRequest(url: request.url), description: try TransferTag(request, ifRange: nil).text, fate)
  }

  /// The app's delegate is told that the system has launched it.
  private func launch() async -> AsyncStream<Void> {
    let (calls, continuation) = AsyncStream.makeStream(of: Void.self)
    await MainActor.run {
      URLSessionSource.handleBackgroundEvents(identifier: identifier) { continuation.yield() }
    }
    return calls
  }

  private func inbox() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path("\(identifier)"))
  }

  // MARK: One run

  @Test func aTransferRunsToItsEnd() async throws {
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext(concurrentDownloads: 3))
    async let opened = session.open(request)
    let task = try #require(await begun.next() as? URLSessionDownloadTask)
    #expect(TransferTag(description: task.taskDescription)?.id == "film")

    let configuration = task.session.configuration
    #expect(configuration.kind == .background && configuration.identifier == identifier)
    #expect(configuration.isDiscretionary && configuration.sessionSendsLaunchEvents)
    #expect(configuration.urlCache == nil && configuration.httpCookieStorage == nil)
    #expect(configuration.timeoutIntervalForRequest == 60 && configuration.timeoutIntervalForResource == 604_800)

    task.finish(200, fields, content)
    let reply = try await opened
    #expect(reply.coverage == .whole && reply.length == .known(50_000))
    #expect(try await reply.bytes() == Array(content))
    await session.stop()
  }

  @Test func refusalsAreReplies() async throws {
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    async let opened = session.open(request)
    let task = try #require(await begun.next() as? URLSessionDownloadTask)
    // The system reports the page as a file.
    task.finish(404, [:], Data("no such film".utf8))
    let reply = try await opened
    guard case .none = reply.coverage else {
      Issue.record("\(reply.coverage)")
      return
    }
    #expect(try inbox().isEmpty)
    await session.stop()
  }

  @Test func resumeDataOfAFailureIsNotUsed() async throws {
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    async let failing = downloadError { try await session.open(request) }
    let first = try #require(await begun.next() as? URLSessionDownloadTask)
    first.end(
      URLError(.networkConnectionLost, userInfo: ["NSURLSessionDownloadTaskResumeData": Data("bplist00".utf8)]))
    #expect(await failing?.code == .network)

    async let opened = session.open(request)
    let second = try #require(await begun.next() as? URLSessionDownloadTask)
    #expect(
      second.taskIdentifier != first.taskIdentifier && second.originalRequest?.value(forHTTPHeaderField: "Range") == nil
    )
    second.finish(200, fields, content)
    #expect(try await opened.bytes() == Array(content))
    await session.stop()
  }

  @Test func aTaskThatTheSystemCancelsIsTriedAgain() async throws {
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    async let failing = downloadError { try await session.open(request) }
    let task = try #require(await begun.next() as? URLSessionDownloadTask)
    // The user has removed the app from the list of apps.
    task.end(URLError(.cancelled, userInfo: ["NSURLErrorBackgroundTaskCancelledReasonKey": 0]))
    let error = await failing
    #expect(error?.code == .network && error?.message.contains("the system cancelled the transfer") == true)
    await session.stop()
  }

  @Test func pausingCancelsTheTask() async throws {
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    let opening = Task { try await session.open(request) }
    let task = try #require(await begun.next() as? URLSessionDownloadTask)
    opening.cancel()
    await #expect(throws: CancellationError.self) { try await opening.value }
    await session.stop()
    #expect(task.state == .completed || task.state == .canceling)
    #expect(Daemon.shared.running(task.taskIdentifier, of: identifier) == nil)
  }

  // MARK: After a relaunch

  @Test func aFileThatArrivedBeforeTheRelaunchIsHandedOver() async throws {
    Daemon.shared.setEarlier(
      [try earlier(.finished(status: 200, fields: fields, content: content))], of: identifier)
    var calls = await launch().makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    func read() async throws {
      let reply = try await session.open(request)
      #expect(try inbox().count == 2, "the file and its note")
      #expect(try await reply.bytes() == Array(content))
    }
    try await read()
    // The handler is called when the file has been read and its reply released.
    await calls.next()
    #expect(Daemon.shared.running(8, of: identifier) == nil, "no second request")
    await session.stop()
  }

  @Test func theAppMayRegisterItsHandlerLate() async throws {
    Daemon.shared.setEarlier(
      [try earlier(.finished(status: 200, fields: fields, content: content))], of: identifier)
    let session = try await source.start(in: SourceContext())
    #expect(try await session.open(request).bytes() == Array(content))
    var calls = await launch().makeAsyncIterator()
    await calls.next()
    await session.stop()
  }

  @Test func aTaskThatStillRunsIsTakenOver() async throws {
    Daemon.shared.setEarlier([try earlier(.running)], of: identifier)
    var calls = await launch().makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    // Nothing waits for it yet, so that the system's report is all that the handler needs.
    await calls.next()
    async let opened = session.open(request)
    try #require(Daemon.shared.running(7, of: identifier)).finish(200, fields, content)
    #expect(try await opened.bytes() == Array(content))
    #expect(Daemon.shared.running(8, of: identifier) == nil, "no second request")
    await session.stop()
  }

  @Test func aTaskThatFailedBeforeTheRelaunchIsRequestedAgain() async throws {
    Daemon.shared.setEarlier([try earlier(.failed(URLError(.timedOut)))], of: identifier)
    var calls = await launch().makeAsyncIterator()
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    await calls.next()
    #expect(await begun.next()?.taskIdentifier == 7)
    async let opened = session.open(request)
    let task = try #require(await begun.next() as? URLSessionDownloadTask)
    #expect(task.taskIdentifier == 8)
    task.finish(200, fields, content)
    #expect(try await opened.bytes() == Array(content))
    await session.stop()
  }

  @Test func tasksOfOtherRequestsAndStrangeTasksAreCancelled() async throws {
    let other = SourceRequest(url: try #require(URL(string: "https://example.org/old")), id: "film")
    var strange = try earlier(.running, number: 3)
    strange.description = "another library's"
    Daemon.shared.setEarlier([strange, try earlier(.running, number: 4, for: other)], of: identifier)
    var begun = Daemon.shared.begun(identifier).makeAsyncIterator()
    let session = try await source.start(in: SourceContext())
    var restored: [URLSessionTask] = []
    for _ in 0..<2 { restored.append(try #require(await begun.next())) }
    async let opened = session.open(request)
    let task = try #require(await begun.next() as? URLSessionDownloadTask)
    #expect(task.taskIdentifier == 5)
    #expect(restored.allSatisfy { $0.state == .completed })
    task.finish(200, fields, content)
    #expect(try await opened.bytes() == Array(content))
    await session.stop()
  }
}
