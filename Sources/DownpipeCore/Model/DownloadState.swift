public import Foundation

/// The state of a download.
public enum DownloadState: Sendable, Hashable {
  /// The download continues without intervention; the reason says what it waits for.
  case waiting(WaitingReason)
  /// Bytes are being requested or received.
  case transferring
  /// The bytes are complete, and the named step is running.
  case processing(step: String)
  /// The download was paused and continues only when it is resumed. Its bytes are kept.
  case paused
  /// The download has finished, with the given artifact.
  case finished(Artifact)
  /// The download has failed for good, and it can be resumed. Its bytes are kept, unless the error says that they are of no
  /// use, such as `.digestMismatch`.
  case failed(DownloadError)
  /// The download was cancelled, and its partial was removed.
  case cancelled

  /// A state without its associated values, as ledgers keep it.
  public enum Phase: String, Sendable, Hashable, Codable, CaseIterable {
    /// Waits for its turn, a time or a resource.
    case waiting
    /// Transfers bytes.
    case transferring
    /// Processes complete bytes.
    case processing
    /// Was paused.
    case paused
    /// Has finished.
    case finished
    /// Has failed for good.
    case failed
    /// Was cancelled.
    case cancelled

    /// Whether the download has ended: it is finished, failed or cancelled.
    public var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
    /// Whether the download is being worked on, and is therefore held by an owner.
    public var isActive: Bool { self == .transferring || self == .processing }
  }

  /// The state without its associated values.
  public var phase: Phase {
    switch self {
    case .waiting: .waiting
    case .transferring: .transferring
    case .processing: .processing
    case .paused: .paused
    case .finished: .finished
    case .failed: .failed
    case .cancelled: .cancelled
    }
  }
}

extension DownloadState: CustomStringConvertible {
  /// The state as a sentence part, such as `waiting for its turn` or `failed: the server answered 404`.
  ///
  /// The text is for people and may change. To decide, use the cases or ``phase``.
  public var description: String {
    switch self {
    case .waiting(let reason):
      reason.description.hasPrefix("wait") ? reason.description : "waiting: \(reason)"
    case .transferring: "downloading"
    case .processing(let step): "processing: \(step)"
    case .paused: "paused"
    case .finished(let artifact): artifact.name.isEmpty ? "finished" : "finished: \(artifact.name)"
    case .failed(let error): "failed: \(error.message)"
    case .cancelled: "cancelled"
    }
  }
}

/// The reason why a download waits.
///
/// ``description`` is English text for people. An app that shows other texts switches over the cases, and over the `id` of
/// ``gate(id:text:)`` and ``limit(id:text:)``, which are those of its pipeline's stages.
public enum WaitingReason: Sendable, Hashable, CustomStringConvertible {
  /// Other downloads go first. It starts when a slot is free.
  case turn
  /// A limit is reached: the one of the admission policy with this ``Stage/id``, which is `DefaultLimit` for a pipeline
  /// without a policy. The text is the policy's, such as `3 of 3 downloads are running`.
  case limit(id: String, text: String)
  /// A gate is closed: the one with this ``Stage/id``. The text is the gate's, and by convention begins with its name.
  case gate(id: String, text: String)
  /// The machine lacks something of its own, such as space or a folder, and pauses; see ``DownloadError/Scope/machine``.
  /// One download tries again soon.
  case machine(code: DownloadError.Code, text: String)
  /// Another download was started by hand in its place; see ``Preemption``. Only the event of the stop says so: later the
  /// reason is the limit, or the turn.
  case preempted(by: DownloadID)
  /// An attempt failed; the next one is due at a time.
  case retry(at: Date, after: DownloadError)
  /// A resource is missing. The download is tried again when the resource is available, and at the given time at the
  /// latest.
  case missing(Awaited, until: Date, after: DownloadError)
  /// All downloads were suspended.
  case suspended
  /// Another process holds the download.
  case elsewhere
  /// Another download has to finish first; see ``DownloadRequest/after``. If there are several, this one is the first
  /// that needs a command, or else the first by id.
  case dependency(DownloadID, Dependency)

  /// What a download does that another one waits for.
  public enum Dependency: String, Sendable, Hashable, CaseIterable {
    /// It waits or runs.
    case unfinished
    /// It was paused.
    case paused
    /// It was cancelled.
    case cancelled
    /// It has failed for good.
    case failed
    /// The ledger has no such download. It may be added later.
    case unknown
  }

  /// The reason as text.
  public var description: String {
    switch self {
    case .turn: "waiting for its turn"
    case .limit(_, let text): text
    case .gate(_, let text): text
    case .machine(_, let text): text
    case .preempted(let id): "preempted by “\(id)”, which was started by hand"
    case .retry(_, let error): "trying again after: \(error.message)"
    case .missing(.network, _, let error): "waiting for the network: \(error.message)"
    case .missing(.disk, _, let error): "waiting for disk space: \(error.message)"
    case .missing(.owner, _, let error): "waiting for another owner: \(error.message)"
    case .missing(.link, _, let error): "waiting for a fresh link: \(error.message)"
    case .missing(.descriptors, _, let error): "waiting for file descriptors: \(error.message)"
    case .suspended: "all downloads are suspended"
    case .elsewhere: "another process is working on it"
    case .dependency(let id, .unfinished): "waits for “\(id)” to finish"
    case .dependency(let id, .paused): "waits for “\(id)”, which is paused"
    case .dependency(let id, .cancelled): "waits for “\(id)”, which was cancelled"
    case .dependency(let id, .failed): "waits for “\(id)”, which has failed"
    case .dependency(let id, .unknown): "waits for “\(id)”, which does not exist"
    }
  }
}

/// A resource that a download can wait for.
public enum Awaited: String, Sendable, Hashable, Codable {
  /// A connection to the server.
  case network
  /// Space in the storage.
  case disk
  /// The release of the partial by its current owner.
  case owner
  /// A fresh link, which the next attempt begins by requesting.
  case link
  /// File descriptors, of which the process has too many in use.
  case descriptors
}
