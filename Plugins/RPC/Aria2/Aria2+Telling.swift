import DownpipeCore
import Foundation

/// What clients ask for each second.
extension Aria2 {
  /// The most downloads that one reply tells.
  private static let most = 10_000

  private func told(_ status: DownloadStatus) -> Aria2Status {
    Aria2Status(status: status, gid: gids.gid(of: status.id), directory: configuration.directory)
  }

  private static func keys(_ parameters: Parameters, _ index: Int) throws(RPCFailure) -> Set<String>? {
    try parameters.optionalList(index).map { Set($0.compactMap(\.text)) }
  }

  func status(_ parameters: Parameters) async throws -> Aria2Status {
    told(try await gids.status(of: try parameters.string(0)))
  }

  func tellStatus(_ parameters: Parameters) async throws -> JSONValue {
    let keys = try Self.keys(parameters, 1)
    return try await status(parameters).json(keys)
  }

  func tellActive(_ parameters: Parameters) async throws -> JSONValue {
    let keys = try Self.keys(parameters, 0)
    let statuses = try await downloader.statuses(
      DownloadQuery(phases: [.transferring, .processing], order: .rank, limit: Self.most))
    return .array(statuses.map { told($0).json(keys) })
  }

  func tellWaiting(_ parameters: Parameters) async throws -> JSONValue {
    let (offset, count) = (try parameters.integer(0), try parameters.integer(1, atLeast: 0))
    let keys = try Self.keys(parameters, 2)
    let size = offset < 0 ? try await counts([.waiting, .paused]) : 0
    guard let (range, isReversed) = Self.range(offset, min(count, Self.most), of: offset < 0 ? size : .max) else {
      return []
    }
    let page = try await lists.statuses(QueueMove.waiting(limit: range.count, offset: range.lowerBound))
    return .array((isReversed ? page.reversed() : page).map { told($0).json(keys) })
  }

  /// The newest ended downloads, as many as `max-download-result` says, the oldest of them first.
  func tellStopped(_ parameters: Parameters) async throws -> JSONValue {
    let (offset, count) = (try parameters.integer(0), try parameters.integer(1, atLeast: 0))
    let keys = try Self.keys(parameters, 2)
    let size = min(try await counts(Self.stopped), mostStopped)
    guard let (range, isReversed) = Self.range(offset, min(count, Self.most), of: size) else { return [] }
    // The ledger lists the newest first.
    let page = try await lists.statuses(
      DownloadQuery(
        phases: Self.stopped, order: .latestChange, limit: range.count, offset: max(0, size - range.upperBound)))
    return .array((isReversed ? page : page.reversed()).map { told($0).json(keys) })
  }

  /// The part of a list that a client asks for. A negative offset counts from the end, and the list is then told backwards.
  static func range(_ offset: Int, _ count: Int, of size: Int) -> (range: Range<Int>, isReversed: Bool)? {
    guard count > 0, size > 0 else { return nil }
    if offset >= 0 {
      guard offset < size else { return nil }
      // The size may be that of a list which was not counted.
      return (offset..<offset + min(count, size - offset), false)
    }
    // Neither sum can overflow: the offset is negative, and the size is not.
    let last = size + offset
    guard last >= 0 else { return nil }
    return (last - min(count - 1, last)..<last + 1, true)
  }

  private func counts(_ phases: Set<DownloadState.Phase>) async throws -> Int {
    let counts = try await downloader.counts()
    return phases.reduce(0) { $0 + (counts[$1] ?? 0) }
  }

  private var mostStopped: Int { settings.value.options["max-download-result"].flatMap { Int($0) } ?? 1000 }

  func servers(_ parameters: Parameters) async throws -> JSONValue {
    let told = try await status(parameters)
    guard told.status.state.phase.isActive else { throw RPCFailure("No active download for GID#\(told.gid.text)") }
    return told.servers
  }

  func globalStat() async throws -> JSONValue {
    let counts = try await downloader.counts()
    func sum(_ phases: Set<DownloadState.Phase>) -> Int64 { Int64(phases.reduce(0) { $0 + (counts[$1] ?? 0) }) }
    let active = try await downloader.statuses(DownloadQuery(phases: [.transferring], limit: Self.most))
    let speed = active.reduce(0.0) { $0 + ($1.progress.bytesPerSecond ?? 0) }
    let stopped = sum(Self.stopped)
    return [
      "downloadSpeed": Aria2Status.number(Int64(exactly: speed.rounded()) ?? 0), "uploadSpeed": "0",
      "numActive": Aria2Status.number(sum([.transferring, .processing])),
      "numWaiting": Aria2Status.number(sum([.waiting, .paused])),
      "numStopped": Aria2Status.number(min(stopped, Int64(mostStopped))),
      "numStoppedTotal": Aria2Status.number(stopped),
    ]
  }
}
