/// What was left behind by a shutdown.
public struct ShutdownReport: Sendable, Hashable {
  /// A stage that did not return in time.
  public struct Unended: Sendable, Hashable {
    /// The name of the stage.
    public let stage: String
    /// The download that the stage works for; `nil` for a stage that works for none or for several.
    public let download: DownloadID?

    /// Creates a description of a stage that did not return.
    public init(stage: String, download: DownloadID?) {
      self.stage = stage
      self.download = download
    }
  }

  /// The stages that did not return; if any of them belongs to a download, the observers and gates are not among them.
  public let unended: [Unended]

  /// Whether all work has ended, and the ledger is closed.
  public let isComplete: Bool

  /// Creates a report: a complete one if nothing is left.
  public init(unended: [Unended]) { self.init(unended: unended, isComplete: unended.isEmpty) }

  init(unended: [Unended], isComplete: Bool) { (self.unended, self.isComplete) = (unended, isComplete) }
}

extension ShutdownReport: CustomStringConvertible {
  /// One sentence.
  public var description: String {
    if isComplete { return "all work has ended" }
    let stages = unended.map { unended in
      unended.stage + (unended.download.map { " (download \($0.rawValue.escaped))" } ?? "")
    }
    return "left behind because it does not return: " + stages.joined(separator: ", ")
  }
}
