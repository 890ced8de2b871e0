@_spi(Ledger) import Downpipe
import DownpipeColumns

/// Writes the downloads of a ledger, page by page in the order of their addition.
struct QueueExport {
  private static let page = 1_000

  private(set) var downloads = 0
  /// How many of them a worker has now.
  private(set) var active = 0

  /// - Parameter write: Gets complete lines.
  mutating func run(from store: any LedgerStore, _ write: ([UInt8]) throws -> Void) async throws {
    try write(Array((QueueFile.firstLine + "\n").utf8))
    var page = try await store.records(after: .min, limit: Self.page)
    while let last = page.last {
      // The ledger works while this page is written.
      async let next = store.records(after: last.generation, limit: Self.page)
      try write(try lines(of: page))
      page = try await next
    }
    try write(Array((QueueFile.lastLine(downloads: downloads) + "\n").utf8))
  }

  private mutating func lines(of page: [DownloadRecord]) throws -> [UInt8] {
    var lines: [UInt8] = []
    for var record in page {
      downloads += 1
      if record.apply(.leaseLost) { active += 1 }
      lines += try RecordLine.bytes(record)
      lines.append(UInt8(ascii: "\n"))
    }
    return lines
  }
}
