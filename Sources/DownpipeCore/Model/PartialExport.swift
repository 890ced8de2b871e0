/// The bytes of an unfinished download, copied into a file for another downloader to go on with; see
/// ``Downloader/exportPartial(_:to:)``.
public struct PartialExport: Sendable, Hashable {
  /// What was asked for, with the link that was used last.
  public let request: DownloadRequest
  /// The file that they were copied into.
  public let file: String
  /// How many there are, from the first byte on.
  public let count: Int64
  /// The size of the whole.
  public let total: ByteCount
  /// Which representation they belong to.
  public let validator: Validator?
  /// The name that the server suggested, made safe.
  public let suggestedName: String?
  /// The media type.
  public let mediaType: String?

  init(_ record: DownloadRecord, file: String, count: Int64) {
    request = record.request
    self.file = file
    self.count = count
    total = record.checkpoint.total
    validator = record.checkpoint.validator
    suggestedName = record.checkpoint.name
    mediaType = record.checkpoint.mediaType
  }
}
