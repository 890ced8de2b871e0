/// Whether downloads may wait for other reasons than their watchers know.
///
/// Reasons are not kept: who shows a list asks for those that it shows, and a download that is watched by itself is read, and
/// told if its reason is another one.
struct ReasonNews: Sendable {
  /// How many downloads are read at a time while others run.
  private static let most = 100

  /// Whether slots, limits or gates have changed, or downloads that others may wait for.
  var mayHaveChanged = false
  /// Whether gates, the machine or a suspension have changed: not only slots, which are filled again at once.
  var isUrgent = false {
    didSet { if isUrgent { mayHaveChanged = true } }
  }
  /// Whether some time has passed since the last news was told.
  private var isDue = false
  /// The watched downloads that have not been read.
  private var unread: ArraySlice<DownloadID> = []

  /// Lets news be told that is not urgent.
  /// - Returns: Whether there is any.
  mutating func tick() -> Bool {
    isDue = mayHaveChanged || !unread.isEmpty
    return isDue
  }

  /// Whether news is told now.
  /// - Parameter isBusy: Whether something runs: its slots change all the time.
  func isDue(whileBusy isBusy: Bool) -> Bool { (mayHaveChanged && (isUrgent || !isBusy)) || isDue }

  /// Removes and returns the downloads to read now.
  /// - Parameter watched: The downloads that are watched by themselves.
  mutating func take(of watched: [DownloadID], whileBusy isBusy: Bool) -> [DownloadID] {
    // The news after this one begins when all have been read.
    if isUrgent || !isBusy || unread.isEmpty {
      if mayHaveChanged { unread = watched[...] }
      mayHaveChanged = false
    }
    let ids = isUrgent || !isBusy ? unread : unread.prefix(Self.most)
    unread = unread.dropFirst(ids.count)
    (isUrgent, isDue) = (false, false)
    return Array(ids)
  }
}

extension WaitingReason {
  /// Whether it is computed from the present state of gates, limits and slots: a moment later it may be another one.
  var mayChange: Bool {
    switch self {
    case .gate, .suspended, .machine: true
    default: isFreeSlot
    }
  }

  /// Whether the download waits for a free slot only.
  var isFreeSlot: Bool {
    switch self {
    case .turn, .limit, .preempted: true
    default: false
    }
  }
}
