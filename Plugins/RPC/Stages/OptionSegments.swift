import DownpipeCore
import DownpipeScheduling

/// The segment policy of a pipeline, with the number of connections that clients have set.
struct OptionSegments: SegmentPolicy, Hashable {
  let base: Segmented?
  let settings: RPCSettings
  /// The most connections to one file.
  let most: Int

  var name: String { base?.name ?? "Segmented" }
  var summary: String { base?.summary ?? "1 connection" }

  func start(size: Int64, of transfer: TransferContext) -> (any SegmentSession)? {
    policy(transfer.metadata)?.start(size: size, of: transfer)
  }

  /// The policy for a download. The number of connections is measured up to `split`, unless a client has also said how many a
  /// server may get: then it is what both allow.
  func policy(_ metadata: [String: String]) -> Segmented? {
    guard let wanted = wanted(metadata) else { return nil }
    let count = min(wanted.connections.maximum, most)
    guard count > 1 else { return nil }
    return Segmented(
      connections: wanted.connections.isAutomatic ? .automatic(upTo: count) : .exactly(count),
      minimumSize: wanted.minimumSize)
  }

  private func wanted(_ metadata: [String: String]) -> Segmented? {
    func number(_ option: String) -> Int? { OptionKey.number(option, metadata, settings) }
    let (split, perServer, smallest) = (
      number("split"), number("max-connection-per-server"), number("min-split-size")
    )
    guard split != nil || perServer != nil || smallest != nil else { return base }
    let connections: Segmented.Connections =
      switch (split, perServer) {
      case (let split?, let perServer?): .exactly(min(split, perServer))
      case (let most?, nil), (nil, let most?): .automatic(upTo: most)
      case (nil, nil): base?.connections ?? 1
      }
    // aria2 splits where each part has that size.
    let minimum = smallest.map { Int64($0).multipliedReportingOverflow(by: 2) }
    let size = minimum.map { $0.overflow ? .max : $0.partialValue }
    return Segmented(connections: connections, minimumSize: size ?? base?.minimumSize ?? Segmented().minimumSize)
  }
}
