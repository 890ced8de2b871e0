@_spi(Ledger) package import DownpipeCore

/// A row of `download` with a value that this program never writes.
package struct DamagedRow: Error {
  /// The record, as far as it could be read.
  package let record: DownloadRecord
  /// The first column that could not be read.
  package let column: String

  package var id: DownloadID { record.id }
  package var reason: String { "its column “\(column)” cannot be read; remove the download, or add it again" }

  /// - Parameters:
  ///   - record: The record, as far as it could be read.
  ///   - column: The first column that could not be read.
  package init(record: DownloadRecord, column: String) { (self.record, self.column) = (record, column) }
}
