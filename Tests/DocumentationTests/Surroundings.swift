extension ExampleHarness {
  /// The variables, modules and declarations that the examples use without declaring them.
  static let documentation = ExampleHarness(
    surroundings: [
      ("downloader", "Downloader"), ("film", "Download"), ("id", "DownloadID"), ("progress", "TransferProgress"),
      ("url", "URL"), ("file", "URL"), ("fresh", "URL"), ("freshLink", "URL"),
      ("bytes", "[UInt8]"), ("key", "[UInt8]"), ("content", "[UInt8]"), ("zipped", "[UInt8]"), ("plain", "[UInt8]"),
      ("chunks", "[[UInt8]]"), ("source", "FakeSource"), ("store", "FakeStorage"), ("context", "RankingContext"),
      ("request", "DownloadRequest"), ("server", "ScriptedHTTPServer"), ("folder", "TemporaryFolder"),
      ("library", "Library"), ("logger", "Logger"), ("links", "Library"), ("time", "Library"),
      ("artifact", "Artifact"), ("episode", "Episode"), ("document", "MetalinkDocument"), ("documentURL", "URL"),
    ],
    exceptions: [
      ("Stages/Body.swift", "chunks", "AsyncStream<[UInt8]>"), ("Stages/Ranking.swift", "store", "any LedgerStore"),
      ("HTTPServer/", "request", "ScriptedRequest"), ("Stages/PostProcessor.swift", "context", "ProcessingContext"),
    ],
    modules: [
      "Downpipe", "DownpipeTesting", "DownpipeService", "DownpipeAppleResumeData", "DownpipeURLSession",
      "DownpipeBackgroundURLSession", "DownpipeLogging", "DownpipeMetrics", "DownpipeTracing", "DownpipeCommand",
      "DownpipeArchive", "DownpipeSignature", "DownpipeMetalink", "DownpipePostgres", "DownpipeS3", "DownpipeRPC",
      "Foundation", "Logging", "ServiceLifecycle", "Testing",
    ] + optionalModules,
    declarations: """
      typealias MyGate = FakeGate
      typealias MyLimit = FakeAdmissionPolicy
      typealias MyLog = RecordingObserver
      typealias BearerToken = FakeInterceptor

      struct MyPolicy: SchedulingPolicy, RetryPolicy {
        func rank(_ context: RankingContext) -> Rank { Rank() }
        func decide(_ failure: Failure) -> RetryDecision { .giveUp }
        func contribute(to parts: inout PipelineParts) {}
      }

      struct MyRefresher: LinkRefresher {
        func refresh(_ expired: ExpiredLink) async throws -> FreshLink { FreshLink(expired.request.url) }
      }

      func MySource() -> FakeSource { FakeSource() }
      func MyStore(_ path: String) -> FileStore { FileStore(path) }
      func MyLedger(_ path: String) -> MemoryLedger { MemoryLedger() }

      struct Episode: Sendable {
        let number: Int
        let title: String
        let guid: String
        let url: URL
      }

      struct Library: Sendable {
        let now: @Sendable () -> Date
        func link(for id: DownloadID) async throws -> (url: URL, token: String) { throw CancellationError() }
        func freshLink() async -> URL { URL(filePath: "/") }
        func token(isRejected: Bool) async throws -> String { throw CancellationError() }
      }
      """)

  private static var optionalModules: [String] {
    #if AsyncHTTPClient
      ["DownpipeAsyncHTTPClient"]
    #else
      []
    #endif
  }

  /// Examples that cannot be compiled here, and why.
  static let exclusions: [(path: String, text: String, because: String)] = [
    ("README.md", ".package(url:", "it is part of a manifest"),
    ("URLSessionSource+Background.swift", "UIApplication", "it needs UIKit"),
    ("Machine/OutsideLedger.swift", "OutsideLedger", "it is for authors of ledgers, who import @_spi(Ledger)"),
    ("Conformance/Conformance.swift", "ConformanceReport", "the report is not public"),
  ]
}
