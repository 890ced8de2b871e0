public import Foundation

/// Where a download stands.
public enum DownloadState: Sendable, Hashable {
  /// It will go on by itself; the reason says what it waits for.
  case waiting(WaitingReason)
  /// Bytes are arriving, or being asked for.
  case transferring
  /// The bytes are complete; the named step is at work.
  case processing(step: String)
  /// Somebody paused it; only somebody can resume it. Its bytes are kept.
  case paused
  /// Done.
  case finished(Artifact)
  /// Given up. Its bytes are kept, and it can be resumed.
  case failed(DownloadError)
  /// Somebody cancelled it; its partial is gone.
  case cancelled

  /// The state without what it carries, as ledgers keep it.
  public enum Phase: String, Sendable, Hashable, Codable, CaseIterable {
    /// Waits for something.
    case waiting
    /// Transfers bytes.
    case transferring
    /// Works on complete bytes.
    case processing
    /// Paused by somebody.
    case paused
    /// Done.
    case finished
    /// Given up.
    case failed
    /// Cancelled by somebody.
    case cancelled

    /// Whether nothing more happens by itself.
    public var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
    /// Whether work on it is under way, and therefore owned.
    public var isActive: Bool { self == .transferring || self == .processing }
  }

  /// The state without what it carries.
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

/// Why a download waits.
public enum WaitingReason: Sendable, Hashable, CustomStringConvertible {
  /// Others go first; it is next when a place is free.
  case turn
  /// A limit is reached: which one.
  case limit(String)
  /// A gate is closed: what it says.
  case gate(String)
  /// An attempt failed; the next one is due at a time.
  case retry(at: Date, after: DownloadError)
  /// Something is missing that time alone does not bring; it is tried again when it is there, and at a time at the
  /// latest.
  case missing(Awaited, until: Date, after: DownloadError)
  /// Somebody has suspended all downloads.
  case suspended
  /// Another process owns it for now.
  case elsewhere

  /// The reason in words.
  public var description: String {
    switch self {
    case .turn: "waiting for its turn"
    case .limit(let what): what
    case .gate(let what): what
    case .retry(_, let error): "trying again after: \(error.message)"
    case .missing(.network, _, let error): "waiting for the network: \(error.message)"
    case .missing(.disk, _, let error): "waiting for room: \(error.message)"
    case .missing(.owner, _, let error): "waiting for its owner: \(error.message)"
    case .missing(.link, _, let error): "waiting for a fresh link: \(error.message)"
    case .missing(.descriptors, _, let error): "waiting for descriptors: \(error.message)"
    case .suspended: "all downloads are suspended"
    case .elsewhere: "another process is working on it"
    }
  }
}

/// What a download can be short of, apart from time.
public enum Awaited: String, Sendable, Hashable, Codable {
  /// A way to the server.
  case network
  /// Room in the storage.
  case disk
  /// Whoever holds the partial has to let go of it.
  case owner
  /// A fresh link, which the next attempt begins by asking for.
  case link
  /// Descriptors, of which the process has too few for all that it has open.
  case descriptors
}
