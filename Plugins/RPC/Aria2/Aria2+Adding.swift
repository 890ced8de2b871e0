import DownpipeCore
import DownpipeMetalink
import Foundation

extension Aria2 {
  /// The options of a download over those for all.
  private func effective(_ given: [String: String]) -> [String: String] {
    optionsForAll.filter { Aria2Option.all[$0.key]?.isOfRequest == true }.merging(given) { $1 }
  }

  /// The folder of all downloads, and what options say of requests.
  var requestOptions: RequestOptions { RequestOptions(directory: configuration.directory) }

  func addURI(_ parameters: Parameters) async throws -> JSONValue {
    let list = try parameters.list(0)
    let texts = list.compactMap(\.text)
    guard !texts.isEmpty else { throw RPCFailure("URI is not provided.") }
    let given = try await given(parameters, 1)
    let position = try Self.position(parameters, 2)
    var urls: [URL] = []
    var refusal: DownloadError?
    for text in texts {
      do {
        let url = try self.url(text)
        if !urls.contains(url) { urls.append(url) }
      } catch { refusal = refusal ?? error }
    }
    guard let first = urls.first else { throw RPCFailure("No URI to download. \(refusal?.message ?? "")") }
    var request = DownloadRequest(first, id: try await id(given), mirrors: Array(urls.dropFirst()))
    try requestOptions.apply(effective(given), to: &request)
    let gids = try await add([request], given, at: position)
    return gids[0]
  }

  func addMetalink(_ parameters: Parameters) async throws -> JSONValue {
    let text = try parameters.string(0)
    let given = try await given(parameters, 1)
    let position = try Self.position(parameters, 2)
    guard let data = Data(base64Encoded: text.filter { !$0.isWhitespace }) else {
      throw RPCFailure("The Metalink document is not Base64.")
    }
    let document = try MetalinkDocument(parsing: Array(data))
    let base = given["metalink-base-uri"].flatMap { URL(string: $0) }
    var folder = DownloadRequest(URL(filePath: "/"))
    // The document has the names.
    var options = effective(given)
    options["out"] = nil
    options["checksum"] = nil
    try requestOptions.apply(options, to: &folder)
    let requests = try document.requests(
      from: base, in: folder.destination.directory,
      changing: { request, _ in
        request.id = GID.random().id
        request.headers = folder.headers
        request.metadata[RequestOptions.folderKey] = folder.metadata[RequestOptions.folderKey]
      }, accepting: { configuration.schemes.contains($0.scheme?.lowercased() ?? "") }, skipping: { _ in })
    guard !requests.isEmpty else { throw RPCFailure("No files to download.") }
    var own = given
    own["gid"] = nil
    return .array(try await add(requests, own, at: position))
  }

  /// Adds requests in one transaction, behind all others or at a place in the queue.
  private func add(
    _ requests: [DownloadRequest], _ given: [String: String], at position: Int?
  ) async throws -> [JSONValue] {
    var kept = given
    // The folder is kept relative to that of all downloads, which may get another path.
    for name in ["gid", "pause", "dir", RequestOptions.timeOption] { kept[name] = nil }
    let now = Date()
    let standard = standardsOfStages
    let time = effective(given)[RequestOptions.timeOption]
    let steps = await stepNames()
    let prepared = try requests.map { request in
      var request = request
      RequestOptions.give(kept, to: &request, over: standard)
      request.queuePosition = queueEnd.next(at: now)
      try configuration.prepare(&request)
      RequestOptions.selectTime(time, in: &request, of: steps)
      return request
    }
    let isPaused = given["pause"] == "true"
    // At a place in the queue they are put before they can start.
    let downloads = try await downloader.add(
      contentsOf: prepared, ifKnown: .keep, paused: isPaused || position != nil)
    if let position {
      do {
        for (index, download) in downloads.enumerated() {
          _ = try await QueueMove(downloader: downloader).move(download.id, to: .index(position + index))
        }
      } catch {
        // They are added all the same.
        if !isPaused { _ = try? await downloader.resumeAll(ids: downloads.map(\.id)) }
        throw error
      }
      if !isPaused { _ = try await downloader.resumeAll(ids: downloads.map(\.id)) }
    }
    return downloads.map { .string(gids.gid(of: $0.id).text) }
  }

  /// Checks a URL of a client: strangers choose them, so files of this machine have none.
  func url(_ text: String) throws(DownloadError) -> URL {
    let url = try DownloadRequest(text, id: "").url
    let scheme = url.scheme?.lowercased() ?? ""
    guard configuration.schemes.contains(scheme) else {
      throw DownloadError(
        .unsupportedURL,
        "The scheme “\(scheme.prefix(32).escaped)” is not supported: use \(configuration.schemes.sorted().joined(separator: ", "))."
      )
    }
    guard url.host()?.isEmpty == false else {
      throw DownloadError(.unsupportedURL, "The URL has no host: write it as \(scheme)://host/path.")
    }
    return url
  }

  private func id(_ given: [String: String]) async throws -> DownloadID {
    guard let text = given["gid"] else { return GID.random().id }
    guard let gid = GID(text) else {
      throw RPCFailure("We encountered a problem while processing the option '--gid'.")
    }
    guard try await !downloader.contains(gid.id) else {
      throw RPCFailure("GID \(gid.text) is used by another download.")
    }
    return gid.id
  }

  private func given(_ parameters: Parameters, _ index: Int) async throws -> [String: String] {
    try await values(of: try parameters.optionalObject(index) ?? [:], where: \.isOfRequest)
  }

  private static func position(_ parameters: Parameters, _ index: Int) throws(RPCFailure) -> Int? {
    guard let position = try parameters.optionalInteger(index) else { return nil }
    guard position >= 0 else { throw RPCFailure("Position must be greater than or equal to 0.") }
    return min(position, 1 << 40)
  }
}
