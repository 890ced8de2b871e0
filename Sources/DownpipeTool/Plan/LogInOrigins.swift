import Downpipe

/// Finds the origins that get a name and a password, or a token.
enum LogInOrigins {
  /// The origins of URLs on the command line and of those in a file, which is read an extra time: a server is asked
  /// first how to log in, and by then its origin must be known.
  static func given(_ plan: GetPlan) async throws -> Set<Origin> {
    var origins = Set(plan.urls.compactMap { Origin(URLLine($0).url) })
    guard let path = plan.inputFile else { return origins }
    guard Folder.kind(path) == .file else {
      throw UsageError("--auth needs to know all hosts in advance: give --input-file a file that can be read twice")
    }
    let list = try URLList(path)
    while let urls = try await list.next() { origins.formUnion(urls.compactMap { Origin(URLLine($0).url) }) }
    return origins
  }

  /// The origins for which the downloads that a command takes were given `--user` or `--bearer`. Other hosts of the
  /// ledger do not get what belongs to these.
  static func stored(
    in ledger: LedgerLocation, directory: String, of choice: LedgerChoice
  ) async throws -> Set<Origin> {
    let downloader = try await Downloader.reading(PipelineSettings(directory: directory, ledger: ledger))
    let origins = await Result { try await stored(downloader, choice) }
    await downloader.shutdown()
    return try origins.get()
  }

  private static func stored(_ downloader: Downloader, _ choice: LedgerChoice) async throws -> Set<Origin> {
    var query = DownloadQuery(limit: 1000)
    switch choice {
    case .ids(let ids): return Set(try await downloader.statuses(of: ids).values.compactMap(\.request.logInOrigin))
    case .phases(let phases): query.filter.phases = phases
    case .published: break
    }
    var origins: Set<Origin> = []
    while true {
      let statuses = try await downloader.statuses(query)
      origins.formUnion(statuses.filter(choice.contains).compactMap(\.request.logInOrigin))
      guard statuses.count == query.limit else { return origins }
      query.offset += statuses.count
    }
  }
}

extension DownloadRequest {
  fileprivate static let logInKey = "downpipe.log-in"

  /// Whether the command that added the download was given a name or a token. Neither of them is stored, but the origin
  /// that they are for: that of the URL.
  var logsIn: Bool {
    get { metadata[Self.logInKey] != nil }
    set { metadata[Self.logInKey] = newValue ? Origin(url)?.description ?? "none" : nil }
  }

  /// The origin that the name or the token is for; `nil` if the command was given neither. The URL may have changed since.
  fileprivate var logInOrigin: Origin? { metadata[Self.logInKey].flatMap { Origin($0) } }
}

extension SourceRequest {
  /// Whether the request is for the server that the name or the token is for, and not for a mirror.
  var isForLogIn: Bool { Origin(url).map { metadata[DownloadRequest.logInKey] == $0.description } ?? false }
}
