/// Why a run is stopped, by the engine or by itself.
enum StopReason: Sendable, Hashable {
  // Indirect, because a reason is a part of many frames.
  indirect case gate(id: String, text: String)
  indirect case limit(id: String, text: String)
  case preempted(by: DownloadID)
  case pause
  case pauseAll
  case restart
  case cancel
  case remove
  case shutdown
  case suspend
  /// The work cannot go on as it has begun: the request has changed in a way that it depends on, or a step waits for the
  /// downloads that it has added. The next run goes on.
  case changed
  case lostLease
  /// The lease could not be renewed and is about to expire.
  case leaseEnds
  case tooSlow(DownloadError)

  /// The name of the case.
  var name: String {
    switch self {
    case .gate: "gate"
    case .limit: "limit"
    case .preempted: "preempted"
    case .pause: "pause"
    case .pauseAll: "pauseAll"
    case .restart: "restart"
    case .cancel: "cancel"
    case .remove: "remove"
    case .shutdown: "shutdown"
    case .suspend: "suspend"
    case .changed: "changed"
    case .lostLease: "lostLease"
    case .leaseEnds: "leaseEnds"
    case .tooSlow: "tooSlow"
    }
  }

  /// The state of the download after the run, and the event that brings its record there.
  var meaning: (DownloadState, Lifecycle.Event) {
    switch self {
    case .gate(let id, let text): (.waiting(.gate(id: id, text: text)), .suspended)
    case .limit(let id, let text): (.waiting(.limit(id: id, text: text)), .suspended)
    case .preempted(let id): (.waiting(.preempted(by: id)), .suspended)
    case .suspend: (.waiting(.suspended), .suspended)
    case .shutdown, .lostLease, .leaseEnds, .tooSlow, .restart, .changed: (.waiting(.turn), .suspended)
    case .pause: (.paused, .pause)
    case .pauseAll: (.paused, .pauseAll)
    case .cancel, .remove: (.cancelled, .cancel)
    }
  }
}
