import DownpipeCore
import DownpipeLogging
import DownpipeTesting
import Foundation
import HangLimit
import InMemoryLogging
import Logging
import Testing

@Suite(.endsHangs)
struct LogObserverTests {
  private let handler = InMemoryLogHandler()
  private let error = DownloadError(.httpStatus, "the server is busy", stage: "HTTPSource", httpStatus: 503)

  private func logger(_ level: Logger.Level = .trace) -> Logger {
    var logger = Logger(label: "downloads") { _ in handler }
    logger.logLevel = level
    return logger
  }

  private func log(_ observer: LogObserver, _ kinds: [DownloadEvent.Kind], _ request: DownloadRequest? = nil)
    async throws
  {
    let request = try request ?? DownloadRequest("https://example.org:8080/film", id: "a")
    let (events, feed) = AsyncStream<DownloadEvent>.makeStream()
    for kind in kinds { feed.yield(DownloadEvent(request, kind)) }
    feed.finish()
    await observer.observe(events)
  }

  private func text(_ key: String, _ metadata: Logger.Metadata) -> String? { metadata[key].map { "\($0)" } }

  @Test func keepsTheContractOfObservers() async throws {
    try await ObserverConformance(LogObserver(logger())).run()
  }

  @Test func aDownloadIsLoggedFromItsWaitToItsEnd() async throws {
    let url = try #require(URL(string: "https://example.org/film?token=SECRET"))
    let bytes = DownloadFixtures.pattern(size: 5000)
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      FakeSource([url: [.status(503), .init(bytes)]])
      FakeRetryPolicy(.resume(after: .zero))
      FakeStorage()
      LogObserver(logger())
    }
    let request = DownloadRequest(
      url, id: "a", tags: ["SECRET"]
    ).with(\.metadata, ["key": "SECRET"]).with(\.headers, ["Authorization": "SECRET"])
    _ = try await downloader.add(request).value
    await downloader.shutdown()

    let entries = handler.entries
    // A download that starts at once does not wait.
    let messages = entries.map { "\($0.message)" }.drop { $0 == "download waits" }
    #expect(
      messages == [
        "download starts", "attempt has failed", "download waits", "download starts", "reply was accepted",
        "step starts", "download has finished",
      ])
    #expect(entries.allSatisfy { $0.metadata["id"] == "a" && $0.metadata["host"] == "example.org" })
    #expect(!entries.contains { "\($0)".contains("SECRET") })
    let failure = try #require(entries.first { $0.message == "attempt has failed" })
    #expect(failure.level == .warning)
    #expect(text("status", failure.metadata) == "503" && text("attempt", failure.metadata) == "1")
    #expect(failure.metadata["url"] == "https://example.org/film?token=…")
    let end = try #require(entries.last)
    #expect(end.level == .info)
    #expect(text("state", end.metadata) == "finished" && text("bytes", end.metadata) == "5000")
  }

  @Test func levelsAreConfigurableAndProgressIsOffByDefault() async throws {
    let kinds: [DownloadEvent.Kind] = [
      .progress(TransferProgress(received: 5, total: .known(10))), .state(.failed(error)), .attemptFailed(error),
      .state(.paused), .restarted(error),
    ]
    try await log(LogObserver(logger()), kinds)
    #expect(handler.entries.map(\.level) == [.error, .warning, .info, .notice])
    handler.clear()
    try await log(
      LogObserver(logger(), levels: .init(progress: .trace, attemptFailed: nil, stopped: nil, failed: .critical)), kinds
    )
    #expect(handler.entries.map(\.level) == [.trace, .critical, .notice])
    let progress = try #require(handler.entries.first?.metadata)
    #expect(text("bytes", progress) == "5" && text("total", progress) == "10")
    handler.clear()
    try await log(LogObserver(logger(.error)), kinds)
    #expect(handler.entries.map(\.level) == [.error])
  }

  @Test func everyEventIsOneLineWithoutSecrets() async throws {
    let request = try DownloadRequest("https://user:SECRET@example.org/a?sig=SECRET", id: "a\nb")
    let error = DownloadError(.network, "no answer\nfrom https://example.org/a?sig=SECRET")
    try await log(
      LogObserver(logger(), levels: .init(progress: .trace)),
      [
        .state(.waiting(.gate(id: "gate", text: "closed\u{1b}[31m"))), .state(.transferring),
        .state(.processing(step: "a\nb")),
        .state(.failed(error)), .restarted(error), .refused(error), .attemptFailed(error),
        .redirected(to: "https://example.org/\n"), .linkRefreshed(to: "https://example.org/"),
        .stepFinished(name: "a\nb"), .removed,
      ], request)
    #expect(handler.entries.count == 11)
    for entry in handler.entries {
      let texts = entry.metadata.values.map { "\($0)" } + [entry.message.description]
      #expect(!texts.contains { $0.contains("SECRET") || $0.contains { $0.isNewline || $0 == "\u{1b}" } })
      #expect(entry.metadata["id"] == "a\\nb")
    }
  }
}
