@_spi(Ledger) import DownpipeCore
import Foundation

// Stages with only a name, to build and print pipelines.

struct Unused: Error {}

struct NamedSource: Source, SourceSession {
  let name: String
  let summary: String
  init(_ name: String = "NamedSource", _ summary: String = "") { (self.name, self.summary) = (name, summary) }
  func accepts(_ url: URL) -> Bool { false }
  func open(_ request: SourceRequest) async throws -> SourceReply { throw Unused() }
}

struct NamedStorage: Storage {
  let name: String
  let summary: String
  init(_ name: String = "NamedStorage", _ summary: String = "") { (self.name, self.summary) = (name, summary) }
  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial { throw Unused() }
  func removePartial(_ key: PartialKey) async throws {}
  func workspace(_ key: PartialKey) async throws -> String? { nil }
  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact { artifact }
  func isStaged(_ artifact: Artifact) -> Bool { false }
  func contains(_ artifact: Artifact) async -> Bool { false }
  func existing(for request: DownloadRequest) async throws -> Artifact? { nil }
  func remove(_ artifact: Artifact) async throws {}
  func storedPath(for path: String) -> String { path }
  func path(forStored storedPath: String) throws -> String { storedPath }
}

struct NamedPolicy: SchedulingPolicy {
  let name: String
  init(_ name: String = "NamedPolicy") { self.name = name }
  func rank(_ context: RankingContext) -> Rank { Rank() }
}

struct NamedLimit: AdmissionPolicy {
  let name: String
  let summary: String
  init(_ name: String = "NamedLimit", _ summary: String = "") { (self.name, self.summary) = (name, summary) }
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }
}

struct NamedGate: Gate {
  let name: String
  let summary: String
  init(_ name: String = "NamedGate", _ summary: String = "") { (self.name, self.summary) = (name, summary) }
  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {}
}

struct NamedInterceptor: RequestInterceptor {
  let name: String
  let summary: String
  init(_ name: String = "NamedInterceptor", _ summary: String = "") { (self.name, self.summary) = (name, summary) }
  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    try await next(request)
  }
}

struct NamedLedger: Ledger {
  let name: String
  init(_ name: String = "NamedLedger") { self.name = name }
  func open() async throws -> any LedgerStore { throw Unused() }
}

struct NamedObserver: Observer {
  let name: String
  init(_ name: String = "NamedObserver") { self.name = name }
  func observe(_ events: AsyncStream<DownloadEvent>) async {}
}

/// A step that takes and returns any form.
struct NamedStep: UniversalPostProcessor {
  let name: String
  init(_ name: String = "NamedStep") { self.name = name }
  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
}

struct Gunzip: PostProcessor {
  func process(_ input: File, in context: ProcessingContext) async throws -> File { input }
}

struct Untar: PostProcessor {
  func process(_ input: File, in context: ProcessingContext) async throws -> Directory { Directory(input.artifact) }
}

struct Prune: PostProcessor {
  func process(_ input: Directory, in context: ProcessingContext) async throws -> Directory { input }
}

struct Tar: PostProcessor {
  func process(_ input: Directory, in context: ProcessingContext) async throws -> File { File(input.artifact) }
}

extension Pipeline {
  /// The names of the steps, in order.
  var stepNames: [String] { steps.map(\.name) }
  /// The names of the sources, in order.
  var sourceNames: [String] { sources.map(\.name) }
}
