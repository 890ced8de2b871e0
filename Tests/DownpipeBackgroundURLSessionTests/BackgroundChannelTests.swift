import Dispatch
import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeBackgroundURLSession

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite(.endsHangs)
struct BackgroundChannelTests {
  private let folder: TemporaryFolder
  private let tasks = FakeTasks()
  private let sessions = BackgroundSessions()
  private let answer = FinishedAnswer(
    status: 200, headers: ["Content-Length": "5", "ETag": "\"v\""], url: "https://example.org/film.mkv")

  init() throws { folder = try TemporaryFolder() }

  private func makeSource(
    _ identifier: String = "a", timer: BackgroundChannel.Timer? = nil
  ) async throws -> BackgroundSession {
    let channel = try await sessions.attach(identifier) { [tasks, folder, sessions] in
      var options = BackgroundChannel.Options()
      if let timer { options.timer = timer }
      options.callHandlers = { sessions.call($0) }
      return (
        try BackgroundChannel(
          inbox: BackgroundInbox(BackgroundInbox.path(of: identifier, below: folder.path)), tasks: tasks,
          options: options),
        tasks
      )
    }
    channel.tellAndWait(.listed([]))
    return BackgroundSession(
      identifier: identifier, sessions: sessions, channel: channel, configuration: .background(identifier))
  }

  private func request(_ id: DownloadID = "film") throws -> SourceRequest {
    SourceRequest(url: try #require(URL(string: "https://example.org/film.mkv")), id: id)
  }

  /// Finishes a task like the delegate: the temporary file does not exist afterwards.
  private func finish(_ task: Int, of source: BackgroundSession, _ answer: FinishedAnswer? = nil) throws {
    let temporary = try folder.write(Array("hello".utf8), to: "temporary")
    let description = tasks.state.withLock { $0.started[task - 1].1 }
    source.channel.tellAndWait(
      .finished(.init(number: task, description: description), answer ?? self.answer, temporary: temporary))
    try? FileManager.default.removeItem(atPath: temporary)
    source.channel.tellAndWait(.completed(task: task, nil))
  }

  /// Opens a URL and finishes its task successfully. Only the caller holds the reply.
  private func finishedReply(of source: BackgroundSession) async throws -> SourceReply {
    async let opened = source.open(request())
    await tasks.untilStarted(1)
    try finish(1, of: source)
    return try await opened
  }

  @Test func aFileIsReadAndGone() async throws {
    let source = try await makeSource()
    do {
      let reply = try await finishedReply(of: source)
      #expect(reply.coverage == .whole && reply.length == .known(5))
      #expect(try await reply.bytes() == Array("hello".utf8))
    }
    await source.channel.tell(andAwait: .attached)
    #expect(try folder.contents() == ["a"])
    let (sent, description) = tasks.state.withLock { $0.started[0] }
    #expect(sent.value(forHTTPHeaderField: "Accept-Encoding") == "identity")
    #expect(TransferTag(description: description)?.id == "film")
  }

  @Test func aFileIsTakenAway() async throws {
    let source = try await makeSource()
    do {
      let reply = try await finishedReply(of: source)
      let file = try #require(reply.body.file)
      #expect(try folder.contents().count == 3)
      try FileManager.default.moveItem(atPath: file, toPath: folder.path("film.mkv"))
    }
    await source.channel.tell(andAwait: .attached)
    #expect(try folder.contents() == ["a", "film.mkv"])
    #expect(try folder.read("film.mkv") == Array("hello".utf8))
  }

  @Test func aFileThatIsDiscardedGoes() async throws {
    let source = try await makeSource()
    try await finishedReply(of: source).body.discard()
    await source.channel.tell(andAwait: .attached)
    #expect(try folder.contents() == ["a"])
  }

  @Test func aFileThatDoesNotAgreeWithItsAnswerGoes() async throws {
    let source = try await makeSource()
    let opening = Task { try await source.open(request()) }
    await tasks.untilStarted(1)
    let answer = FinishedAnswer(status: 200, headers: ["Content-Length": "6"], url: self.answer.url)
    try finish(1, of: source, answer)
    let error = await downloadError { _ = try await opening.value }
    #expect(error?.code == .lengthMismatch)
    await source.channel.tell(andAwait: .attached)
    #expect(try folder.contents() == ["a"])
  }

  @Test func anUntakenFileExistsAtTheNextStart() async throws {
    let source = try await makeSource()
    _ = try await finishedReply(of: source)
    await source.channel.tell(andAwait: .attached)
    // Like another process.
    let next = BackgroundChannelTests(folder: folder)
    let source2 = try await next.makeSource()
    let reply = try await source2.open(request())
    #expect(try await reply.bytes() == Array("hello".utf8))
    #expect(next.tasks.state.withLock { $0.started.isEmpty })
  }

  private init(folder: TemporaryFolder) { self.folder = folder }

  @Test func cancellingCancelsTheTransfer() async throws {
    let source = try await makeSource()
    let opening = Task { try await source.open(request()) }
    await tasks.untilStarted(1)
    opening.cancel()
    await #expect(throws: CancellationError.self) { _ = try await opening.value }
    await source.channel.tell(andAwait: .attached)
    #expect(tasks.state.withLock { $0.cancelled } == [1])
    try finish(1, of: source)
    #expect(try folder.contents() == ["a"])
  }

  @Test func stoppingDoesNotCancelTheTransfer() async throws {
    let source = try await makeSource()
    let opening = Task { try await source.open(request()) }
    await tasks.untilStarted(1)
    await source.stop()
    let error = await downloadError { _ = try await opening.value }
    #expect(error?.code == .shutDown)
    #expect(tasks.state.withLock { $0.cancelled.isEmpty })
    try finish(1, of: source)
    // The same session serves the next downloader.
    let again = try await makeSource()
    #expect(try await again.open(request()).bytes() == Array("hello".utf8))
    #expect(tasks.state.withLock { $0.started.count } == 1)
  }

  @Test func oneSourceASession() async throws {
    let source = try await makeSource()
    let error = await downloadError { _ = try await makeSource() }
    #expect(error?.code == .inUse)
    _ = try await makeSource("b")
    await source.stop()
    _ = try await makeSource()
  }

  @Test func refusesWhatCannotBeAsked() async throws {
    let source = try await makeSource()
    let file = SourceRequest(url: URL(filePath: "/a"))
    #expect(await downloadError { _ = try await source.open(file) }?.code == .unsupportedURL)
    let long = try request(DownloadID(String(repeating: "a", count: 256)))
    #expect(await downloadError { _ = try await source.open(long) }?.code == .invalidRequest)
    #expect(tasks.state.withLock { $0.started.isEmpty })
  }

  // MARK: Handlers

  /// The handlers of two sessions are called on the main thread when their own session is done.
  @Test func handlersAreCalledOnTheMainThread() async throws {
    let (calls, continuation) = AsyncStream<String>.makeStream()
    let register: @MainActor (String, String) -> Void = { [sessions] identifier, name in
      sessions.register(identifier) {
        MainActor.assertIsolated()
        continuation.yield(name)
      }
    }
    // Before and after the session is made.
    await register("a", "a1")
    let (a, b) = (try await makeSource("a"), try await makeSource("b"))
    await register("a", "a2")
    await register("b", "b1")
    a.channel.tellAndWait(.eventsDelivered)
    var iterator = calls.makeAsyncIterator()
    #expect(await iterator.next() == "a1")
    #expect(await iterator.next() == "a2")
    b.channel.tellAndWait(.eventsDelivered)
    #expect(await iterator.next() == "b1")
    a.channel.tellAndWait(.eventsDelivered)
    await register("a", "a3")
    #expect(await iterator.next() == "a3")
  }

  @Test func theClockEndsTheWait() async throws {
    let timers = Mutex<[(Duration, @Sendable () -> Void)]>([])
    let source = try await makeSource { queue, time, action in
      timers.withLock { $0.append((time, { queue.async(execute: action) })) }
    }
    let opening = Task { try await source.open(request()) }
    await tasks.untilStarted(1)
    try finish(1, of: source)
    let reply = try await opening.value
    let (calls, continuation) = AsyncStream<Bool>.makeStream()
    await MainActor.run { sessions.register("a") { continuation.yield(true) } }
    source.channel.tellAndWait(.eventsDelivered)
    let (time, fire) = try #require(timers.withLock { $0.first })
    #expect(time == .seconds(10))
    fire()
    for await _ in calls { break }
    #expect(try await reply.bytes() == Array("hello".utf8))
  }

  // MARK: Platforms without background sessions

  #if !canImport(Darwin)
    @Test func otherPlatformsThrow() async throws {
      let source = URLSessionSource(.background("org.example.films", inbox: folder.path))
      #expect(source.summary == "background “org.example.films”")
      let start = await downloadError { _ = try await source.start(in: SourceContext()) }
      #expect(start?.code == .invalidPipeline)
      #expect(start?.message.contains("Apple platforms only") == true)
      let open = await downloadError { _ = try await source.open(request()) }
      #expect(open?.code == .invalidPipeline)
      #expect(try folder.contents().isEmpty)
      let isCalled = await MainActor.run {
        var isCalled = false
        URLSessionSource.handleBackgroundEvents(identifier: "org.example.films") { isCalled = true }
        return isCalled
      }
      #expect(isCalled)
    }
  #endif
}
