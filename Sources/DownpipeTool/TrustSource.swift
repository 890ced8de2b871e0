import Downpipe
import Foundation

/// Fetches the downloads that were added with `--untrusted` by its rules, and all others by the options of the command.
///
/// The ledger has the mark, and the decision is made for each request: a command also fetches downloads that another
/// command adds meanwhile, and those that a command which has ended leaves behind.
struct TrustSource: Source {
  let usual: any Source
  /// `nil` for clients that do not have the rules: they fetch none of these downloads.
  var strict: (any Source)?
  /// Whether few commands need the source, so that it starts with its first request.
  var isRare = false

  var name: String { usual.name }
  var id: String { usual.id }
  var summary: String { usual.summary }

  func accepts(_ url: URL) -> Bool { usual.accepts(url) }

  func start(in context: SourceContext) async throws -> any SourceSession {
    TrustSession(
      usual: isRare ? LateSession(usual, context) : try await usual.start(in: context),
      strict: strict.map { LateSession($0, context) })
  }

  func decoder(for coding: String) -> (any PostProcessor<File, File>)? {
    guard let usual = usual.decoder(for: coding) else { return nil }
    guard let strict = strict?.decoder(for: coding) else { return usual }
    return TrustDecoder(usual: usual, strict: strict)
  }
}

private struct TrustSession: SourceSession {
  let usual: any SourceSession
  let strict: LateSession?

  func open(_ request: SourceRequest) async throws -> SourceReply {
    guard request.isUntrusted else { return try await usual.open(request) }
    guard let strict else {
      #if LIBCURL
        throw DownloadError(.invalidRequest, "it was added with --untrusted, which works with --source curl only")
      #else
        throw DownloadError(
          .invalidRequest, "it was added with --untrusted, which needs libcurl: this downpipe was built without it")
      #endif
    }
    return try await strict.open(request)
  }

  func stop() async {
    await usual.stop()
    await strict?.stop()
  }
}

/// A session that starts with its first request: few commands have downloads with the mark.
private actor LateSession: SourceSession {
  private let source: any Source
  private let context: SourceContext
  private var starting: Task<any SourceSession, any Error>?

  init(_ source: any Source, _ context: SourceContext) {
    self.source = source
    self.context = context
  }

  private func session() async throws -> any SourceSession {
    let task = starting ?? Task { [source, context] in try await source.start(in: context) }
    starting = task
    return try await task.value
  }

  nonisolated func open(_ request: SourceRequest) async throws -> SourceReply {
    try await session().open(request)
  }

  func stop() async {
    guard let starting else { return }
    if let session = try? await starting.value { await session.stop() }
  }
}

/// Removes a content coding within the limits that apply to the download.
private struct TrustDecoder: PostProcessor {
  let usual: any PostProcessor<File, File>
  let strict: any PostProcessor<File, File>

  var name: String { usual.name }
  var summary: String { usual.summary }

  func process(_ input: File, in context: ProcessingContext) async throws -> File {
    try await step(context).process(input, in: context)
  }

  func isNeeded(in context: ProcessingContext) -> Bool { step(context).isNeeded(in: context) }

  private func step(_ context: ProcessingContext) -> any PostProcessor<File, File> {
    context.request.isUntrusted ? strict : usual
  }
}

extension DownloadRequest {
  fileprivate static let untrustedKey = "downpipe.untrusted"

  /// Whether a command with `--untrusted` has added the download.
  var isUntrusted: Bool {
    get { metadata[Self.untrustedKey] != nil }
    set { metadata[Self.untrustedKey] = newValue ? "yes" : nil }
  }
}

extension SourceRequest {
  /// Whether a command with `--untrusted` has added the download.
  var isUntrusted: Bool { metadata[DownloadRequest.untrustedKey] != nil }
}
