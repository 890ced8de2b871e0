@_spi(Ledger) import Downpipe
import DownpipeColumns
import Foundation

/// Puts exported downloads into a ledger, in batches.
struct QueueImport {
  private static let batch = 5_000
  private static let batchBytes = 16 << 20

  /// Whether downloads without a file come to belong to no folder.
  var isForAnyFolder = false
  /// The name of the folder of the ledger's commands (``/DownpipeFiles/FileStore/location``); `nil` for a ledger that
  /// machines share.
  var location: String?

  private(set) var imported = 0
  private(set) var known = 0
  private(set) var damaged = 0
  /// The number of downloads without a file that belong to another folder.
  private(set) var elsewhere = 0
  /// Whether the file had all that was exported.
  private(set) var isComplete = false

  private var begun = false
  private var downloadsSinceFirstLine: Int64 = 0

  init(isForAnyFolder: Bool, location: String?) {
    (self.isForAnyFolder, self.location) = (isForAnyFolder, location)
  }

  /// What a line says.
  private enum Content: Sendable {
    case blank
    case first(version: Int64)
    case last(downloads: Int64)
    case record(DownloadRecord)
    case damaged(String)
  }

  private struct ReadLine: Sendable {
    let number: Int
    let content: Content

    init(_ line: LineReader.Line) {
      number = line.number
      guard let bytes = line.bytes else {
        content = .damaged("it is too long")
        return
      }
      guard bytes.contains(where: { $0 > 0x20 }) else {
        content = .blank
        return
      }
      switch QueueFile.kind(of: bytes) {
      case .first(let version): content = .first(version: version)
      case .last(let downloads): content = .last(downloads: downloads)
      case .download:
        do throws(RecordLine.Damage) {
          content = .record(try RecordLine.record(bytes))
        } catch {
          content = .damaged(error.reason)
        }
      }
    }
  }

  /// - Throws: ``UsageError`` for a file that is no export, or one of a newer version; ``DownloadError`` of the ledger.
  mutating func run(from reader: LineReader, into store: any LedgerStore) async throws {
    var lines = try await reader.next(Self.batch, of: Self.batchBytes, ReadLine.init)
    while !lines.isEmpty {
      // The next lines are read while the ledger works.
      async let next = reader.next(Self.batch, of: Self.batchBytes, ReadLine.init)
      try await put(lines, into: store)
      lines = try await next
    }
    if !begun { throw Self.noExport }
    if !isComplete {
      OutputFile.warn("lines are missing: the export was not completed, or the file was cut off or damaged")
    }
  }

  private mutating func put(_ lines: [ReadLine], into store: any LedgerStore) async throws {
    var records: [(line: Int, record: DownloadRecord)] = []
    for line in lines {
      switch line.content {
      case .blank: break
      case .first(let version):
        guard version <= QueueFile.version else {
          throw UsageError(
            "line \(line.number): the export is of format \(version), and this downpipe reads \(QueueFile.version): "
              + "update it")
        }
        (begun, isComplete, downloadsSinceFirstLine) = (true, false, 0)
      case _ where !begun: throw Self.noExport
      case .last(let downloads):
        isComplete = downloads == downloadsSinceFirstLine
        if !isComplete {
          OutputFile.warn(
            "line \(line.number): \(downloads) downloads were exported, and the file has \(downloadsSinceFirstLine)")
        }
      case .damaged(let reason):
        (isComplete, downloadsSinceFirstLine) = (false, downloadsSinceFirstLine + 1)
        refuse(line.number, reason)
      case .record(var record):
        (isComplete, downloadsSinceFirstLine) = (false, downloadsSinceFirstLine + 1)
        place(&record)
        records.append((line.number, record))
      }
    }
    try await put(records[...], into: store)
  }

  private static let noExport = UsageError(
    "the file is no export of downpipe: “downpipe export” makes one, and “downpipe import-resume-data” reads the resume "
      + "data of URLSession")

  private mutating func refuse(_ line: Int, _ reason: String) {
    damaged += 1
    OutputFile.warn("line \(line) is left out: \(reason)")
  }

  private mutating func put(_ records: ArraySlice<(line: Int, record: DownloadRecord)>, into store: any LedgerStore)
    async throws
  {
    guard let first = records.first else { return }
    do {
      for isPut in try await store.restore(records.map(\.record), at: Date()) {
        if isPut { imported += 1 } else { known += 1 }
      }
    } catch let error as DownloadError where error.code == .invalidRequest {
      // Downloads that wait for each other: the smaller the parts, the more can be imported.
      guard records.count > 1 else { return refuse(first.line, error.message) }
      let middle = records.startIndex + records.count / 2
      try await put(records[..<middle], into: store)
      try await put(records[middle...], into: store)
    }
  }

  /// Decides to which folder a download belongs.
  private mutating func place(_ record: inout DownloadRecord) {
    // The paths of files are relative to their folder.
    guard let folder = record.location, folder != location, record.phase != .finished, record.steps.artifact == nil,
      record.earlierArtifact == nil
    else { return }
    if isForAnyFolder {
      record.location = nil
      // In another folder there may be bytes of the same name that are not the ones the record means.
      record.checkpoint = Checkpoint()
    } else {
      elsewhere += 1
    }
  }
}
