@_spi(Ledger) import Downpipe
import DownpipeJSON
import Foundation

/// Shows what `downpipe get` would do, and writes nothing.
///
/// Each server is asked for the first byte: the head of that reply has the size and the name, and tells whether a
/// download can be resumed. Some servers refuse `HEAD`, or respond to it with another length.
struct DryRun: Sendable {
  /// What would happen with one URL.
  struct Forecast: Sendable {
    var id: DownloadID
    /// The URL as it was typed.
    var url: String
    var path: String?
    var total = ByteCount.unknown
    /// `nil` when the server was not asked.
    var isResumable: Bool?
    /// The most connections that the file would be fetched over.
    var connections = 1
    /// The other URLs of the file.
    var mirrors: [String] = []
    /// Whether another file has the path.
    var isTaken = false
    /// The state and the received bytes in the ledger.
    var phase: DownloadState.Phase?
    var received: Int64 = 0
    /// Whether the server of a finished file would be asked about it.
    var isRefreshed = false
    var error: DownloadError?
  }

  var plan: GetPlan
  var settings: PipelineSettings
  var isJSON: Bool
  var isQuiet: Bool
  var urls = URLStyle()

  /// - Returns: The exit status: 0 if every URL can be downloaded, 1 if some cannot, 130 after a signal.
  func run(_ list: URLList?, _ interruption: Interruption = Interruption()) async throws -> Int32 {
    // A ledger that does not exist is not created. It is opened first: the servers are not asked if that fails.
    let hasLedger = settings.ledger.map { $0.path.map(Folder.kind) ?? .file } == .some(.file)
    let downloader = hasLedger ? try await Downloader.reading(settings) : nil
    let result = await Result { try await run(list, downloader, interruption) }
    await downloader?.shutdown()
    return try result.get()
  }

  private func run(
    _ list: URLList?, _ downloader: Downloader?, _ interruption: Interruption
  ) async throws -> Int32 {
    let source = try await startSource()
    let result = await Result {
      try await withThrowingTaskGroup(of: Int32?.self) { group in
        defer { group.cancelAll() }
        group.addTask { await interruption.wait() ? Interruption.exitStatus : nil }
        group.addTask { try await show(list, source, downloader) ? 0 : 1 }
        while let status = try await group.next() { if let status { return status } }
        throw CancellationError()
      }
    }
    await source.stop()
    return try result.get()
  }

  private func startSource() async throws -> any SourceSession {
    let context = SourceContext(concurrentDownloads: settings.jobs, downloadsPerHost: settings.perHost ?? settings.jobs)
    var sessions = FirstAcceptingSession()
    do {
      for source in try Pipeline(settings).sources {
        sessions.parts.append((source, try await source.start(in: context)))
      }
      return sessions
    } catch {
      await sessions.stop()
      if let error = error as? DownloadError { throw UsageError(error.sentence) }
      throw error
    }
  }

  /// - Returns: Whether every URL can be downloaded.
  private func show(_ list: URLList?, _ source: any SourceSession, _ downloader: Downloader?) async throws -> Bool {
    var isComplete = try await show(plan.urls, source, downloader)
    while let urls = try await list?.next() { isComplete = try await show(urls, source, downloader) && isComplete }
    return isComplete
  }

  /// Shows the forecasts in the order of the URLs.
  private func show(
    _ urls: [String], _ source: any SourceSession, _ downloader: Downloader?
  ) async throws -> Bool {
    guard plan.isMetalink else { return try await show(urls.map(subject), source, downloader) }
    var isComplete = true
    for text in urls {
      let subjects: [Subject]
      do {
        let content = try await MetalinkDocuments(plan, settings).content(of: text)
        subjects =
          content.leftOut.compactMap { file in
            file.error.map { Subject(id: file.id, url: file.url, request: .failure($0)) }
          }
          + content.requests.map { Subject(id: $0.id, url: $0.givenURL, request: .success($0)) }
      } catch let failure as MetalinkDocuments.Failure {
        subjects = [Subject(id: plan.id(for: text), url: text, request: .failure(failure.error))]
      }
      isComplete = try await show(subjects, source, downloader) && isComplete
    }
    return isComplete
  }

  /// A file that would be downloaded.
  struct Subject: Sendable {
    var id: DownloadID
    /// The URL as it was typed.
    var url: String
    var request: Result<DownloadRequest, DownloadError>
  }

  private func subject(_ text: String) -> Subject {
    Subject(
      id: plan.id(for: text), url: URLLine(text).url,
      request: Result { () throws(DownloadError) in try plan.request(for: text) })
  }

  /// Shows the forecasts in order, as many at once as there would be downloads.
  private func show(
    _ subjects: [Subject], _ source: any SourceSession, _ downloader: Downloader?
  ) async throws -> Bool {
    var isComplete = true
    var rest = subjects[...]
    while !rest.isEmpty {
      let batch = rest.prefix(settings.jobs)
      rest = rest.dropFirst(settings.jobs)
      let forecasts = try await withThrowingTaskGroup(of: (Int, Forecast).self) { group in
        for (place, subject) in batch.enumerated() {
          group.addTask { (place, try await forecast(subject, source, downloader)) }
        }
        return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
      }
      // What was interrupted has not failed.
      try Task.checkCancellation()
      for forecast in batch.indices.compactMap({ forecasts[$0 - batch.startIndex] }) {
        try show(forecast)
        if forecast.error != nil { isComplete = false }
      }
    }
    return isComplete
  }

  private func show(_ forecast: Forecast) throws {
    if isJSON {
      try OutputFile.standardOutput.write(Self.line(forecast, urls) + "\n")
    } else if let error = forecast.error {
      OutputFile.warn("\(urls.label(forecast.url, forecast.id)): \(error.sentence)")
    } else if !isQuiet {
      try OutputFile.standardOutput.write(sentence(forecast).harmless + "\n")
    }
  }

  func forecast(
    _ text: String, _ source: any SourceSession, _ downloader: Downloader?
  ) async throws -> Forecast {
    try await forecast(subject(text), source, downloader)
  }

  private func forecast(
    _ subject: Subject, _ source: any SourceSession, _ downloader: Downloader?
  ) async throws -> Forecast {
    var forecast = Forecast(id: subject.id, url: subject.url)
    do {
      var request = try subject.request.get()
      let known = try await downloader?.status(of: request.id)
      if known?.request.isUntrusted ?? false { request.isUntrusted = true }
      forecast.phase = known?.state.phase
      forecast.received = known?.artifact == nil ? known?.progress.received ?? 0 : 0
      if let downloader, let known, await Feeder.isDone(known, asked: request, await downloader.pipeline.storage) {
        forecast.path = known.artifact?.place
        forecast.isRefreshed = request.refresh != .never
        forecast.total = known.artifact?.size ?? .unknown
      } else {
        let reply = try await ask(source, for: request, &forecast)
        if let downloader, known != nil {
          forecast.error = try await downloader.contradiction(in: reply, for: request.id)
        }
      }
    } catch let error as DownloadError {
      forecast.error = error
    }
    return forecast
  }

  private func ask(
    _ source: any SourceSession, for request: DownloadRequest, _ forecast: inout Forecast
  ) async throws -> SourceReply {
    var asked = SourceRequest(
      url: request.url, id: request.id, range: RequestedRange(from: 0, to: 1),
      headers: request.headers(for: request.url),
      metadata: request.metadata, isNamedByServer: request.isNamedByServer)
    if let logIn = LogInInterceptor(settings.network.logIn) { asked = logIn.authorized(asked) }
    var reply = try await source.open(asked).asRead(to: asked, total: .unknown)
    reply.body.discard()
    let isRefused =
      if case .reject(let error) = ResumePlan.decide(
        checkpoint: Checkpoint(), request: asked, reply: reply)
      { error.code == .rangeRefused } else { false }
    if isRefused {
      asked.range = nil
      reply = try await source.open(asked).asRead(to: asked, total: .unknown)
      reply.body.discard()
    }
    switch reply.coverage {
    case .range(_, let total): (forecast.total, forecast.isResumable) = (total, true)
    case .whole: (forecast.total, forecast.isResumable) = (reply.length, false)
    // An empty file has no first byte.
    case .none(.rangeNotSatisfiable(let total)): (forecast.total, forecast.isResumable) = (total, true)
    case .none(.status(let status)):
      throw DownloadError(.httpStatus, "the server answered \(status)", httpStatus: status)
    default: throw DownloadError(.invalidResponse, "the server sent no usable response to a range request")
    }
    segment(reply, of: request, &forecast)
    let name = SafeFileName.make(from: reply.suggestedName, url: reply.finalURL ?? request.url)
    let path = try path(of: request, finishedName(request.destination.name ?? name), reply)
    forecast.path = path
    forecast.isTaken = Folder.kind(path) != nil
    return reply
  }

  /// Where the file would be.
  private func path(of request: DownloadRequest, _ name: String, _ reply: SourceReply) throws(DownloadError) -> String {
    let place = PlacementStep(directory: settings.directory, conflict: settings.conflict, scope: .everywhere)
    let kind: Artifact.Kind = plan.steps.strippedComponents == nil ? .file : .directory
    return try place.path(
      of: Artifact(kind: kind, location: .memory([]), name: name),
      in: ProcessingContext(request: request, workspace: nil, lastModified: reply.validator?.lastModified))
  }

  /// Notes how many connections and which mirrors a download would use.
  private func segment(_ reply: SourceReply, of request: DownloadRequest, _ forecast: inout Forecast) {
    var mirrors = request.mirrors
    if forecast.isResumable == true, let total = forecast.total.bytes, reply.contentCoding == nil,
      reply.validator?.isStrong ?? false,
      let session = settings.segmented?.start(
        size: total, of: TransferContext(request.id, Candidate(host: request.host), metadata: request.metadata))
    {
      forecast.connections = session.maximumConnections
      // Only segments use those that the server names.
      mirrors += reply.duplicates.filter { $0 != request.url && !mirrors.contains($0) }
    }
    forecast.mirrors = mirrors.map(\.absoluteString)
  }

  /// The name of the finished file for the name that the server suggests.
  func finishedName(_ suggested: String) -> String {
    if let name = plan.outputName { return name }
    if plan.steps.gunzips { return UnpackedName.stripping(suggested) }
    return plan.steps.strippedComponents == nil ? suggested : ExtractStep.folderName(for: suggested)
  }

  func sentence(_ forecast: Forecast) -> String {
    let path = forecast.path ?? urls.label(forecast.url, forecast.id)
    guard let isResumable = forecast.isResumable else {
      return "\(path): finished already" + (forecast.isRefreshed ? "; its server would be asked for changes" : "")
    }
    let size = forecast.total.bytes.map(ByteFormat.binary.format) ?? "unknown size"
    var text = "\(path): \(size), \(isResumable ? "can be resumed" : "cannot be resumed")"
    if forecast.connections > 1 {
      text += ", \(settings.connections == nil ? "up to " : "")\(forecast.connections) connections"
    }
    if !forecast.mirrors.isEmpty {
      text += ", \(forecast.mirrors.count) mirror\(forecast.mirrors.count == 1 ? "" : "s")"
    }
    if forecast.received > 0 { text += "; \(ByteFormat.binary.format(forecast.received)) received already" }
    guard forecast.isTaken else { return text }
    switch settings.conflict {
    case .keepBoth: return text + "; the name is taken: the new file gets a number"
    case .replace: return text + "; replaces the existing file"
    case .fail: return text + "; the name is taken: the download fails"
    case .reuse: return text + "; the name is taken: the existing file may be used"
    }
  }

  static func line(_ forecast: Forecast, _ urls: URLStyle = URLStyle()) -> String {
    let object: JSONObject = [
      "event": "dryRun", "id": forecast.id.rawValue, "url": urls.text(forecast.url), "path": forecast.path,
      "total": forecast.total.bytes, "resumable": forecast.isResumable,
      "segments": forecast.connections, "mirrors": forecast.mirrors.map(urls.text), "taken": forecast.isTaken,
      "state": forecast.phase?.rawValue, "bytes": forecast.received, "error": forecast.error.map(StatusLine.error),
    ]
    return object.json
  }
}

/// The sessions of a pipeline's sources: each URL is opened by the first source that accepts it.
private struct FirstAcceptingSession: SourceSession {
  var parts: [(source: any Source, session: any SourceSession)] = []

  func open(_ request: SourceRequest) async throws -> SourceReply {
    guard let part = parts.first(where: { $0.source.accepts(request.url) }) else {
      throw DownloadError(.unsupportedURL, "no source accepts “\(request.url.scheme ?? "")” URLs")
    }
    return try await part.session.open(request)
  }

  func stop() async {
    for part in parts { await part.session.stop() }
  }
}
