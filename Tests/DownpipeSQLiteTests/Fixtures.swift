#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeSQLite
  import Foundation
  import GRDB
  import Testing

  let start = Date(timeIntervalSince1970: 1_700_000_000)

  func time(_ seconds: Double) -> Date { start.addingTimeInterval(seconds) }

  func addition(_ id: DownloadID, _ order: Int64 = 0, tags: Set<String> = []) throws -> LedgerAddition {
    LedgerAddition(
      request: try DownloadRequest("https://example.org/file", id: id, tags: tags), arrival: order)
  }

  /// Damages the row of a download, as a faulty medium or another program might.
  func damage(_ ledger: any Ledger, _ id: DownloadID, _ assignments: String) async throws {
    let ledger = try #require(ledger as? SQLiteLedger)
    let other = try DatabaseQueue(path: ledger.path)
    try await other.write { db in
      try db.execute(sql: "UPDATE download SET \(assignments) WHERE id = ?", arguments: [id.rawValue])
    }
    try other.close()
  }

  /// Runs a test in a temporary folder, which is deleted afterwards.
  func withFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-sqlite-\(DownloadID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder.path)
  }
#endif
