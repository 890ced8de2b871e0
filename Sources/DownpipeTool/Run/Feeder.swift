import Downpipe
import Foundation

/// Adds URLs to a downloader, many at once.
struct Feeder: Sendable {
  /// What is to be done with them.
  var plan: GetPlan

  /// The first downloads run while the others are still being added.
  private static let mostAtOnce = 200

  /// Adds those that can be used, and says the last word on the others.
  func add(_ urls: [String], to downloader: Downloader, _ monitor: RunMonitor) async throws {
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
        let id = DownloadIdentity(url: text, outputName: plan.outputName).id
        if await monitor.take(id) { try await monitor.close(LastWord(id: id, url: text, error: error)) }
      }
    }
    try await add(requests, to: downloader, monitor)
  }

  /// Adds downloads that belong to this command from now on; what an earlier run has finished is not fetched again.
  func add(_ requests: [DownloadRequest], to downloader: Downloader, _ monitor: RunMonitor) async throws {
    let earlier = try await earlier(requests, downloader)
    let storage = await downloader.pipeline.storage
    await monitor.beginAdding()
    var taken: Set<DownloadID> = []
    var rest: [DownloadID] = []
    for request in requests {
      guard let status = earlier[request.id], status.state.phase == .finished else {
        rest.append(request.id)
        continue
      }
      guard await monitor.take(request.id) else { continue }
      if await isDone(status, asked: request, storage), let word = LastWord(status, wasFinishedBefore: true) {
        try await monitor.close(word)
      } else {
        // Gone meanwhile, or wanted otherwise now: it begins anew.
        try await downloader.remove(request.id)
        taken.insert(request.id)
      }
    }
    // As late as can be: what is taken may start, and must do so as it is asked for now.
    for (id, isNew) in zip(rest, await monitor.take(rest)) where isNew { taken.insert(id) }
    let new = requests.filter { taken.remove($0.id) != nil }
    if !new.isEmpty { try await downloader.add(contentsOf: new) }
    // A command given anew is not made to wait by what an earlier one has met.
    for request in new where earlier[request.id]?.isHeldBack ?? false { try await downloader.resume(request.id) }
    await monitor.endAdding()
    try await monitor.tick()
  }

  /// What the ledger has of downloads that earlier runs, or others at the same time, have finished, paused, or left
  /// waiting.
  private func earlier(
    _ requests: [DownloadRequest], _ downloader: Downloader
  ) async throws -> [DownloadID: DownloadStatus] {
    // A new ledger has nothing to tell, and is not asked for every one.
    let counts = try await downloader.counts()
    guard [.finished, .paused, .waiting].contains(where: { counts[$0, default: 0] > 0 }) else { return [:] }
    return try await downloader.statuses(of: requests.map(\.id))
  }

  /// Whether a download that is in the ledger is what is asked for now, and its file is still there.
  private func isDone(
    _ status: DownloadStatus, asked request: DownloadRequest, _ storage: any Storage
  ) async -> Bool {
    guard let artifact = status.artifact, RequestWishes(status.request) == RequestWishes(request),
      Set(request.expectedDigests).isSubset(of: status.request.expectedDigests)
    else { return false }
    // What is in memory has no file that could have changed.
    guard artifact.path != nil else { return true }
    return await storage.contains(artifact)
  }
}

extension DownloadStatus {
  /// Whether it would not be tried at once by itself: it is paused, or waits for another attempt.
  var isHeldBack: Bool {
    switch state {
    case .paused, .waiting(.retry), .waiting(.missing): true
    default: false
    }
  }
}
