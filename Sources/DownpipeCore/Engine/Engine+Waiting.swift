internal import Foundation

/// A download of this run that waits for something which may come before its time is over.
struct MissingResource: Sendable {
  let what: Awaited
  /// The bytes it would still write.
  let needed: Int64
  /// The bytes that could be written when it found out that there were too few.
  let available: Int64
  /// When it is tried in any case.
  let until: Date
}

extension WaitingReason {
  /// Why a download waits that has failed for now.
  init(_ awaited: Awaited?, until due: Date, after error: DownloadError) {
    self = awaited.map { .missing($0, until: due, after: error) } ?? .retry(at: due, after: error)
  }
}

// Waiting for what is missing: the network, room on the disk. The due time is in the ledger; here is only what
// may make it due earlier, and of that no more than fits in memory.
extension Engine {
  private static let mostMissing = 100_000
  /// How often a full disk is looked at.
  private static let lookInterval: Duration = .seconds(2)

  /// Remembers, or forgets, what a settled download is short of.
  func noteMissing(of run: Run) async {
    let record = run.record
    missing[run.id] = nil
    guard record.phase == .waiting, let until = record.notBefore, let what = record.awaited,
      missing.count < Self.mostMissing
    else { return }
    switch what {
    case .network:
      missing[run.id] = MissingResource(what: what, needed: 0, available: 0, until: until)
    case .disk:
      // A storage that cannot tell is tried in its time.
      guard let available = await availableBytes() else { return }
      let rest = record.checkpoint.total.bytes.map { $0 - record.checkpoint.ranges.byteCount }
      guard running[run.id] == nil else { return }
      missing[run.id] = MissingResource(
        what: what, needed: max(rest ?? 0, 1 << 20), available: available, until: until)
      wake()
    case .owner, .link:
      break
    }
  }

  private func availableBytes() async -> Int64? {
    (try? await storage.availableBytes()) ?? nil
  }

  /// A gate has said something new: those who watch a waiting download learn why it waits now, and where there was no
  /// network there may be one.
  func heedGates() async {
    let reports = gates.reduce(0) { $0 &+ $1.latest.reports }
    guard reports != gateReports else { return }
    gateReports = reports
    await publishWaiting()
    for slot in gates { if case .all(.closed) = slot.rule.extent { return } }
    await makeDue(missing.filter { $0.value.what == .network }.map(\.key))
  }

  /// Looks at the disk every now and then while somebody waits for room.
  func watchForRoom() async {
    while missing.values.contains(where: { $0.what == .disk }) {
      guard (try? await options.time.sleep(for: Self.lookInterval)) != nil else { break }
      let now = options.time.date
      missing = missing.filter { $0.value.until > now }
      guard var room = await availableBytes() else { continue }
      // Room is given away once, so that those who wait do not fill it up together. Less than there was when a
      // download failed cannot be enough for it.
      var ready: [DownloadID] = []
      for (id, need) in missing where need.what == .disk && room > need.available && room >= need.needed {
        room -= need.needed
        ready.append(id)
      }
      await makeDue(ready)
    }
    isWatchingForRoom = false
  }

  /// Tells those who watch single downloads that do not run how these stand.
  func publishWaiting() async {
    for id in hub.watchedDownloads where running[id] == nil {
      guard let status = try? await status(of: id), running[id] == nil else { continue }
      hub.publish(stateOf: status)
    }
  }

  private func makeDue(_ ids: [DownloadID]) async {
    guard !ids.isEmpty else { return }
    for id in ids { missing[id] = nil }
    // Were it to fail, they would become due in their own time.
    _ = try? await store.transition(.ids(ids), .becameDue, at: options.time.date)
    for id in ids where hub.isWatched(id) && running[id] == nil {
      if let status = try? await status(of: id), running[id] == nil { hub.publish(stateOf: status) }
    }
    wake()
  }
}
