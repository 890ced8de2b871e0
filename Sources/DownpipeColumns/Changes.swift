@_spi(Ledger) package import DownpipeCore
import Foundation

/// An error that a caller's change has thrown. It undoes what the change has written and is passed on.
package struct RefusedChange: Error {
  package let error: any Error

  package init(error: any Error) { self.error = error }
}

extension DownloadRequest {
  /// Changes the request to the form that is read back from a database.
  package mutating func makeStorable() {
    if !tags.isEmpty { tags = Set(tags.map(RecordColumns.key)) }
    if !after.isEmpty { after = Set(after.map { DownloadID(RecordColumns.key($0.rawValue)) }) }
    // A relative URL is stored as an absolute URL.
    if url.baseURL != nil { url = url.absoluteURL }
    for index in mirrors.indices where mirrors[index].baseURL != nil { mirrors[index] = mirrors[index].absoluteURL }
  }
}
