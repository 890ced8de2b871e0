/// The limit on the output of a ``Source/decoder(for:)``, against files that decode to far more bytes than they have.
///
/// The limits are those of `Gunzip` with its default settings, and the maximum size of the request.
package struct DecodingLimit: Sendable, Hashable {
  /// The output that the limit on the ratio always allows: 1 GiB.
  static let freeOutput: Int64 = 1 << 30
  /// The maximum ratio of the output to the coded bytes.
  static let maximumRatio: Int64 = 256
  /// The maximum output: 64 GiB.
  static let maximumOutput: Int64 = 64 << 30
  /// The maximum output without a workspace: 256 MiB.
  static let maximumInMemory: Int64 = 256 << 20

  /// The maximum number of bytes.
  package let byteCount: Int64
  /// The error of a file that decodes to more bytes.
  package let error: DownloadError

  /// Returns the lowest limit for a file.
  /// - Parameters:
  ///   - codedBytes: The number of coded bytes.
  ///   - context: The context of the step.
  package init(codedBytes: Int64, in context: ProcessingContext) {
    let (product, overflow) = codedBytes.multipliedReportingOverflow(by: Self.maximumRatio)
    var limits: [(bytes: Int64, why: String)] = [
      (Self.maximumOutput, ""),
      (
        max(Self.freeOutput, overflow ? .max : product),
        ", as a decompression bomb does: keep its content coding if you trust it"
      ),
    ]
    if let maximum = context.request.maximumSize { limits.append((maximum, ", the maximum of the request")) }
    if context.workspace == nil {
      limits.append((Self.maximumInMemory, ", the limit for memory: use a storage that writes files"))
    }
    let lowest = limits.min { $0.bytes < $1.bytes } ?? (Self.maximumOutput, "")
    byteCount = lowest.bytes
    error = DownloadError(
      .tooLarge, "the file of \(codedBytes) coded bytes decodes to more than \(lowest.bytes) bytes\(lowest.why)")
  }
}
