#if SQLite
  import DownpipeCore
  import Foundation

  let start = Date(timeIntervalSince1970: 1_700_000_000)

  func time(_ seconds: Double) -> Date { start.addingTimeInterval(seconds) }

  func addition(_ id: DownloadID, _ order: Int64 = 0, tags: Set<String> = []) throws -> LedgerAddition {
    LedgerAddition(
      request: try DownloadRequest("https://example.org/file", id: id, tags: tags), rank: Rank().ascending(order),
      arrival: order)
  }

  /// Runs a test in a folder of its own, which is removed afterwards.
  func withFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-sqlite-\(DownloadID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder.path)
  }
#endif
