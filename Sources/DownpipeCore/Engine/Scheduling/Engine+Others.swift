// Changes by other users of the ledger: other stores in this process, and other processes.
extension Engine {
  /// The time between two looks for changes by other processes. Their watchers hear of them within a second.
  private static let lookInterval: Duration = .milliseconds(500)

  /// Publishes the changes of other users of the ledger in this process at once.
  func followOthers() async {
    guard let changes = store.changesByOthers else { return }
    for await _ in changes {
      noteChangesByOthers()
      // If many downloads are watched, they are not read after each commit of another user.
      if hub.watchedDownloads.count > 100 { try? await time.sleep(for: options.progressInterval, purpose: .reasons) }
    }
  }

  /// Lets the next turn look for downloads that others have released, made due or changed.
  func noteChangesByOthers() {
    mode.mustTakeOver = true
    waits.mayHaveDelayed = true
    mode.mayLease = true
    context.mailbox.wake()
  }

  /// Takes over the requests of running downloads that others have changed, and publishes the changes of those that are
  /// watched.
  func takeOverFromOthers() async {
    guard mode.mustTakeOver else { return }
    mode.mustTakeOver = false
    let before = slots.runs.mapValues { $0.read { $0.request } }
    if !before.isEmpty, let records = try? await store.records(of: Array(before.keys)) {
      for record in records where slots.runs[record.id]?.key == record.partialKey {
        takeOver(record, since: before[record.id])
      }
    }
    publishLater(hub.watchedDownloads)
  }

  // MARK: Other processes

  /// Whether to begin to look for changes by other processes.
  var mustLookForOthers: Bool {
    !mode.looksForOthers && mode.hearsOthers && !mode.isStopping && (mode.mayHaveQueue || isAnythingAwaited)
  }

  private var isAnythingAwaited: Bool { hub.isAnythingWatched || !idleWaiters.isEmpty }

  /// Looks for changes by other processes, while a change could matter here.
  func lookForOthers() async {
    defer { mode.looksForOthers = false }
    while !Task.isCancelled {
      do {
        guard let isChanged = try await store.hasChangesByOtherProcesses() else {
          mode.hearsOthers = false
          return
        }
        if isChanged {
          noteChangesByOthers()
          hub.publishIncomplete()
        }
      } catch {
        // The ledger is asked again after the interval.
      }
      guard await concernsOthers(), (try? await time.sleep(for: Self.lookInterval, purpose: .others)) != nil else {
        return
      }
    }
  }

  /// Whether something is watched, awaited or queued. The queue is read only if nothing is watched.
  private func concernsOthers() async -> Bool {
    if isAnythingAwaited { return true }
    // The loop sets this again after commands.
    mode.mayHaveQueue = false
    let counts = try? await store.counts(.all)
    let isQueued = counts.map { $0.contains { ($0.key == .waiting || $0.key.isActive) && $0.value > 0 } } ?? true
    if isQueued { mode.mayHaveQueue = true }
    return mode.mayHaveQueue || isAnythingAwaited
  }
}
