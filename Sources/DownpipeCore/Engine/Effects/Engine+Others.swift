// Changes by other users of the ledger: other stores in this process, and other processes.
extension Engine {
  /// Publishes the changes of other users of the ledger in this process at once.
  func followOthers() async {
    guard let changes = store.changesByOthers else { return }
    for await _ in changes {
      noteChangesByOthers()
      hub.publishIncomplete()
      // If many downloads are watched, they are not read after each commit of another user.
      if hub.watchedDownloads.count > 100 { try? await time.sleep(for: options.progressInterval, purpose: .others) }
    }
  }

  /// Lets the next turn look for downloads that others have released, made due or changed.
  func noteChangesByOthers() {
    decide(.changedByOthers)
  }

  // MARK: Other processes

  private var isAnythingAwaited: Bool { hub.isAnythingWatched || !state.idleWaiters.isEmpty }

  /// Looks for changes by other processes.
  func lookForOthers() async {
    // If the ledger fails, it is asked again after the interval.
    var isChanged: Bool? = false
    do { isChanged = try await store.hasChangesByOtherProcesses() } catch {}
    guard let isChanged else { return decide(.lookedForOthers(mayMatter: nil)) }
    if isChanged {
      noteChangesByOthers()
      hub.publishIncomplete()
    }
    decide(.lookedForOthers(mayMatter: await concernsOthers()))
  }

  /// Whether something is watched, awaited or queued. The queue is read only if nothing is watched.
  private func concernsOthers() async -> Bool {
    if isAnythingAwaited { return true }
    // This is set again when something may start.
    decide(.queue(mayExist: false))
    let counts = try? await store.counts(.all)
    let isQueued = counts.map { $0.contains { ($0.key == .waiting || $0.key.isActive) && $0.value > 0 } } ?? true
    if isQueued { decide(.queue(mayExist: true)) }
    return state.mode.mayHaveQueue || isAnythingAwaited
  }
}
