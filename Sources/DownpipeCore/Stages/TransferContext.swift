/// What rate and segment policies are told of a running download.
///
/// The values are those of the present request, also after a change of the request during the transfer.
public struct TransferContext: Sendable, Hashable {
  /// The id of the download.
  public var id: DownloadID
  /// The properties that gates and admission policies decide by, too.
  public var candidate: Candidate
  /// The values that the app has attached to the request. A policy of one's own finds its settings of the download here.
  public var metadata: [String: String]

  /// Creates a context. All properties have defaults, so that tests name what they need.
  public init(_ id: DownloadID = "download", _ candidate: Candidate = Candidate(), metadata: [String: String] = [:]) {
    self.id = id
    self.candidate = candidate
    self.metadata = metadata
  }
}
