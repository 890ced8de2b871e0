extension DownloadRequest {
  /// Where a download comes from that a ``FollowUp`` has added.
  public struct Lineage: Sendable, Hashable, Codable {
    /// The download whose step has added this one.
    public let parent: DownloadID
    /// The first download of the line, which the app has added itself.
    public let root: DownloadID
    /// The number of the generation: 1 for the downloads that follow from the root.
    public let depth: Int

    /// The lineage of the downloads that follow from a request.
    package init(following request: DownloadRequest) {
      parent = request.id
      root = request.lineage?.root ?? request.id
      let (next, overflow) = (request.lineage?.depth ?? 0).addingReportingOverflow(1)
      depth = overflow ? .max : next
    }
  }
}
