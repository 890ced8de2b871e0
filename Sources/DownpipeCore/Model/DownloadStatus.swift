public import Foundation

/// Everything there is to know about a download at one moment: an immutable copy.
public struct DownloadStatus: Sendable, Hashable, Identifiable {
  /// The download's name.
  public let id: DownloadID
  /// What was asked for.
  public let request: DownloadRequest
  /// Where it stands.
  public let state: DownloadState
  /// How far it is.
  public let progress: TransferProgress
  /// The attempts begun so far.
  public let attempts: Int
  /// The byte at which the latest transfer went on; 0 when it began at the beginning.
  public let resumedFrom: Int64
  /// Bytes received over the network, the repeated ones too.
  public let bytesFetched: Int64
  /// The name the file has or is to have, once that is known.
  public let name: String?
  /// When it was first added.
  public let createdAt: Date
  /// When it last changed.
  public let updatedAt: Date

  package init(
    id: DownloadID, request: DownloadRequest, state: DownloadState, progress: TransferProgress, attempts: Int,
    resumedFrom: Int64, bytesFetched: Int64, name: String?, createdAt: Date, updatedAt: Date
  ) {
    self.id = id
    self.request = request
    self.state = state
    self.progress = progress
    self.attempts = attempts
    self.resumedFrom = resumedFrom
    self.bytesFetched = bytesFetched
    self.name = name
    self.createdAt = createdAt
    self.updatedAt = updatedAt
  }

  /// The error, when it failed or waits for another attempt.
  public var error: DownloadError? {
    switch state {
    case .failed(let error), .waiting(.retry(_, let error)), .waiting(.missing(_, _, let error)): error
    default: nil
    }
  }

  /// The result, when it is finished.
  public var artifact: Artifact? {
    if case .finished(let artifact) = state { artifact } else { nil }
  }
}

/// How far a transfer is.
public struct TransferProgress: Sendable, Hashable {
  /// Bytes on disk.
  public var received: Int64
  /// Bytes of the whole file.
  public var total: ByteCount
  /// Bytes a second over the last few seconds; `nil` when nothing is being transferred.
  public var bytesPerSecond: Double?

  /// Makes a progress.
  public init(received: Int64 = 0, total: ByteCount = .unknown, bytesPerSecond: Double? = nil) {
    self.received = received
    self.total = total
    self.bytesPerSecond = bytesPerSecond
  }

  /// From 0 to 1; `nil` while the total is unknown.
  public var fraction: Double? {
    guard case .known(let total) = total else { return nil }
    return total == 0 ? 1 : min(1, Double(received) / Double(total))
  }

  /// The time that is left at the present speed; `nil` while it cannot be told.
  public var timeRemaining: Duration? {
    guard case .known(let total) = total, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
    // A server may announce exabytes and send a byte a minute.
    return .seconds(min(Double(max(0, total - received)) / bytesPerSecond, 1e9))
  }
}
