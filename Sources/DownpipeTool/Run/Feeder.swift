import Downpipe
import Foundation

/// Adds URLs to a downloader, many at once.
struct Feeder: Sendable {
  var plan: GetPlan
  /// Reads the documents that the texts name; `nil` if they are the URLs of files.
  var documents: MetalinkDocuments?
  /// Whether the ledger had downloads before this command, which the command may continue.
  private var hasHistory = true

  /// The first downloads run while the rest is being added.
  private static let mostAtOnce = 200

  init(plan: GetPlan, documents: MetalinkDocuments? = nil) {
    self.plan = plan
    self.documents = documents
  }

  /// Looks whether there are downloads of earlier commands: a new ledger is not asked for each download.
  mutating func lookForHistory(_ downloader: Downloader) async throws {
    let counts = try await downloader.counts()
    hasHistory = counts.values.contains { $0 > 0 }
  }

  /// Adds the URLs that can be used, and records a failure for each of the others.
  func add(_ urls: [String], to downloader: Downloader, _ monitor: RunMonitor) async throws {
    if let documents {
      for text in urls { try await add(documents, text, to: downloader, monitor) }
      return
    }
    var rest = urls[...]
    while !rest.isEmpty {
      try await add(rest.prefix(Self.mostAtOnce), to: downloader, monitor)
      rest = rest.dropFirst(Self.mostAtOnce)
    }
  }

  private func add(_ urls: ArraySlice<String>, to downloader: Downloader, _ monitor: RunMonitor) async throws {
    var requests: [DownloadRequest] = []
    requests.reserveCapacity(urls.count)
    for text in urls {
      do throws(DownloadError) {
        requests.append(try plan.request(for: text))
      } catch {
        let id = plan.id(for: text)
        if await monitor.include(id) {
          try await monitor.close(DownloadResult(id: id, url: URLLine(text).url, error: error))
        }
      }
    }
    try await add(requests, to: downloader, monitor)
  }

  /// Adds the files of a document, and records a failure of the document, or of each file that is left out.
  private func add(
    _ documents: MetalinkDocuments, _ text: String, to downloader: Downloader, _ monitor: RunMonitor
  ) async throws {
    do {
      let content = try await documents.content(of: text)
      for result in content.leftOut where await monitor.include(result.id) { try await monitor.close(result) }
      var rest = content.requests[...]
      while !rest.isEmpty {
        try await add(Array(rest.prefix(Self.mostAtOnce)), to: downloader, monitor)
        rest = rest.dropFirst(Self.mostAtOnce)
      }
      for notice in content.notices { try await monitor.show(notice) }
    } catch let failure as MetalinkDocuments.Failure {
      let id = plan.id(for: text)
      guard await monitor.include(id) else { return }
      try await monitor.close(DownloadResult(id: id, url: text, error: failure.error))
    }
  }

  /// Adds downloads to this command. Files that an earlier command has finished are not fetched again, unless the requests
  /// ask for a refresh and the servers have others.
  func add(_ requests: [DownloadRequest], to downloader: Downloader, _ monitor: RunMonitor) async throws {
    let earlier = hasHistory ? try await downloader.statuses(of: requests.map(\.id)) : [:]
    let storage = await downloader.pipeline.storage
    let (requests, kept) = Self.keepingTrust(requests, earlier)
    await monitor.beginAdding()
    var taken: Set<DownloadID> = []
    var rest: [DownloadID] = []
    for request in requests {
      guard let status = earlier[request.id], status.state.phase == .finished else {
        rest.append(request.id)
        continue
      }
      guard await monitor.include(request.id) else { continue }
      let isThere = await Self.isThere(status, asked: request, storage)
      if isThere, request.refresh == .never, Self.hasDigests(status, asked: request),
        let result = DownloadResult(status, wasFinishedBefore: true)
      {
        try await monitor.close(result)
        continue
      }
      // The file is gone, or the options have changed: the download starts again. If only the digests have changed, the
      // record keeps the file, which the new one replaces.
      if !isThere { try await downloader.remove(request.id) }
      taken.insert(request.id)
    }
    // As late as possible: a download that is taken may start, and must start with the options of this command.
    for (id, isNew) in zip(rest, await monitor.include(rest)) where isNew { taken.insert(id) }
    let new = requests.filter { taken.remove($0.id) != nil }
    let added = new.isEmpty ? [] : try await downloader.add(contentsOf: new)
    // What is still fresh stays finished.
    let fresh = added.filter { !$0.isNew && earlier[$0.id]?.state.phase == .finished }.map(\.id)
    let unasked = fresh.isEmpty ? [:] : try await downloader.statuses(of: fresh)
    for status in unasked.values {
      guard status.state.phase == .finished, let result = DownloadResult(status, wasFinishedBefore: true) else {
        continue
      }
      try await monitor.close(result)
    }
    for request in new where kept.contains(request.id) { await monitor.countUntrusted() }
    // A command that is run again does not wait out the back-off of an earlier one.
    for request in new where earlier[request.id]?.isHeldBack ?? false { try await downloader.resume(request.id) }
    await monitor.endAdding()
    try await monitor.tick()
  }

  /// Marks requests for downloads that an earlier command has added with `--untrusted`: adding a download again must not
  /// lift its rules. The ids are those of requests without the option.
  private static func keepingTrust(
    _ requests: [DownloadRequest], _ earlier: [DownloadID: DownloadStatus]
  ) -> ([DownloadRequest], Set<DownloadID>) {
    var (requests, kept) = (requests, Set<DownloadID>())
    for index in requests.indices where !requests[index].isUntrusted {
      let id = requests[index].id
      guard earlier[id]?.request.isUntrusted ?? false else { continue }
      requests[index].isUntrusted = true
      kept.insert(id)
    }
    return (requests, kept)
  }

  /// Whether a finished download has what the request asks for, and its file still exists.
  static func isDone(
    _ status: DownloadStatus, asked request: DownloadRequest, _ storage: any Storage
  ) async -> Bool {
    guard hasDigests(status, asked: request) else { return false }
    return await isThere(status, asked: request, storage)
  }

  /// Whether the digests of the request are among those that a finished download was checked against.
  private static func hasDigests(_ status: DownloadStatus, asked request: DownloadRequest) -> Bool {
    Set(request.expectedDigests).isSubset(of: status.request.expectedDigests)
      && (request.pieces == nil || request.pieces == status.request.pieces)
  }

  /// Whether the file of a finished download still exists, and was made by the steps that the request asks for.
  private static func isThere(
    _ status: DownloadStatus, asked request: DownloadRequest, _ storage: any Storage
  ) async -> Bool {
    let asked = RequestSteps(request)
    var earlier = RequestSteps(status.request)
    // What was verified meets the requirement, also where it was not asked for.
    if !status.verified.isEmpty || !asked.requiresDigest { earlier.requiresDigest = asked.requiresDigest }
    guard let artifact = status.artifact, earlier == asked else { return false }
    // An artifact in memory has no file that could have changed.
    guard artifact.path != nil else { return true }
    return await storage.contains(artifact)
  }
}

extension DownloadStatus {
  /// Whether the download does not start by itself now: it is paused, or waits for another attempt.
  var isHeldBack: Bool {
    switch state {
    case .paused, .waiting(.retry), .waiting(.missing): true
    default: false
    }
  }
}
