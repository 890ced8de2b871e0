/// The bytes of an unfinished download, copied into a file that another downloader can continue; see
/// ``Downloader/exportPartial(_:to:)``.
public struct PartialExport: Sendable, Hashable {
  /// The request of the download, with the link that was last used.
  public let request: DownloadRequest
  /// The absolute path of the file with the copied bytes.
  public let file: String
  /// The number of copied bytes, starting with the first byte of the file.
  public let count: Int64
  /// The size of the whole file.
  public let total: ByteCount
  /// The validator of the representation; `nil` when the server sent none.
  public let validator: Validator?
  /// The content coding of the bytes, such as `gzip`; `nil` for identity. Only a downloader that requests the same
  /// coding can continue coded bytes.
  public let contentCoding: String?
  /// The file name suggested by the server, made safe; `nil` when there is none.
  public let suggestedName: String?
  /// The media type sent by the server; `nil` when there is none.
  public let mediaType: String?

  init(_ record: DownloadRecord, file: String, count: Int64) {
    request = record.request
    self.file = file
    self.count = count
    total = record.checkpoint.total
    validator = record.checkpoint.validator
    contentCoding = record.checkpoint.contentCoding
    suggestedName = record.checkpoint.name
    mediaType = record.checkpoint.mediaType
  }
}
