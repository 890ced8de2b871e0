public import Foundation

/// The state of a download at one moment, as an immutable copy.
public struct DownloadStatus: Sendable, Hashable, Identifiable {
  /// The id of the download.
  public let id: DownloadID
  /// The request of the download.
  public let request: DownloadRequest
  /// The state of the download.
  public let state: DownloadState
  /// The progress of the transfer.
  public let progress: TransferProgress
  /// Which bytes of the file are on disk, as the ledger knows since the last checkpoint; empty when the download has finished, and
  /// its partial is gone. ``TransferProgress/received`` is the number at this moment.
  public let storedRanges: ByteRangeSet
  /// How far the step that works on the file has come; `nil` when no step works, and when it does not say.
  public let stepProgress: StepProgress?
  /// The number of attempts begun, without those that were stopped for a change of the request or ended by a fault of the machine.
  public let attempts: Int
  /// The offset at which the latest transfer continued; 0 when it started at the first byte.
  public let resumedFrom: Int64
  /// The number of bytes received over the network, including repeated ones.
  public let bytesFetched: Int64
  /// The name of the file, or the name that it is to get; `nil` while it is unknown.
  public let name: String?
  /// The file of an earlier fetch, which is in place while the download is refreshed or fetched again, also if that has
  /// failed; otherwise `nil`. A file that the download may not replace, such as a folder, is left out once another one is
  /// being fetched.
  public let earlierArtifact: Artifact?
  /// The digests that the steps of the pipeline have compared with the file, and found right; empty while none was, and if
  /// nothing has checked the file.
  public let verified: [VerifiedDigest]
  /// The time at which the download was first added.
  public let createdAt: Date
  /// The time at which the download last changed. During a transfer, the time at which its last bytes were measured,
  /// which happens several times a second.
  public let updatedAt: Date

  package init(
    id: DownloadID, request: DownloadRequest, state: DownloadState, progress: TransferProgress,
    storedRanges: ByteRangeSet = ByteRangeSet(), stepProgress: StepProgress? = nil, attempts: Int, resumedFrom: Int64,
    bytesFetched: Int64, name: String?,
    earlierArtifact: Artifact? = nil, verified: [VerifiedDigest] = [], createdAt: Date,
    updatedAt: Date
  ) {
    self.id = id
    self.request = request
    self.state = state
    self.progress = progress
    self.storedRanges = storedRanges
    self.stepProgress = stepProgress
    self.attempts = attempts
    self.resumedFrom = resumedFrom
    self.bytesFetched = bytesFetched
    self.name = name
    self.earlierArtifact = earlierArtifact
    self.verified = verified
    self.createdAt = createdAt
    self.updatedAt = updatedAt
  }

  /// The error, if the download has failed or waits for another attempt; otherwise `nil`.
  public var error: DownloadError? {
    switch state {
    case .failed(let error), .waiting(.retry(_, let error)), .waiting(.missing(_, _, let error)): error
    default: nil
    }
  }

  /// The result, if the download has finished; otherwise `nil`.
  public var artifact: Artifact? {
    if case .finished(let artifact) = state { artifact } else { nil }
  }
}

/// The progress of a transfer.
public struct TransferProgress: Sendable, Hashable {
  /// The number of stored bytes.
  public var received: Int64
  /// The size of the whole file.
  public var total: ByteCount
  /// The speed over the last few seconds, in bytes per second; `nil` when no transfer is running.
  public var bytesPerSecond: Double?
  /// The number of bytes received over the network since the download was last started, including bytes that were
  /// fetched again; 0 when it does not run.
  public var fetched: Int64
  /// The number of connections over which bytes of the file arrive; 0 while none do.
  public var connections: Int

  /// Creates a progress value.
  public init(
    received: Int64 = 0, total: ByteCount = .unknown, bytesPerSecond: Double? = nil, fetched: Int64 = 0,
    connections: Int = 0
  ) {
    self.received = received
    self.fetched = fetched
    self.connections = connections
    self.total = total
    self.bytesPerSecond = bytesPerSecond
  }

  /// The received share of the file, from 0 to 1; `nil` while the total is unknown.
  public var fraction: Double? {
    guard case .known(let total) = total else { return nil }
    return total == 0 ? 1 : min(1, Double(received) / Double(total))
  }

  /// The remaining time at the current speed; `nil` while it cannot be computed.
  public var timeRemaining: Duration? {
    guard case .known(let total) = total, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
    // A server may announce exabytes and send one byte a minute: keep the number in range.
    return .seconds(min(Double(max(0, total - received)) / bytesPerSecond, 1e9))
  }
}

/// How far a step has come; see ``ProcessingContext/report(_:)``.
public struct StepProgress: Sendable, Hashable {
  /// The number of bytes of the step's input that it has worked through.
  public var completed: Int64
  /// The number of bytes of its input.
  public var total: ByteCount
  /// The number of things that it has made or seen, such as the entries of an archive; `nil` when it does not count.
  public var items: Int64?

  /// Creates a progress value.
  public init(completed: Int64, total: ByteCount = .unknown, items: Int64? = nil) {
    self.completed = completed
    self.total = total
    self.items = items
  }

  /// The completed share, from 0 to 1; `nil` when the total is unknown.
  public var fraction: Double? {
    guard case .known(let total) = total else { return nil }
    return total > 0 ? min(1, max(0, Double(completed) / Double(total))) : 1
  }
}
