import Foundation

/// Everything that was measured.
struct Results: Codable, Sendable {
  var machine: Machine
  var isQuick: Bool
  var runs: Int
  var rows: [RowResult] = []

  /// Adds rows; a row that is there already is replaced.
  mutating func merge(_ other: Results) {
    for row in other.rows {
      if let index = rows.firstIndex(where: { $0.name == row.name }) { rows[index] = row } else { rows.append(row) }
    }
  }
}

/// The measurements of one row.
struct RowResult: Codable, Sendable {
  let name: String
  let title: String
  var ideal: Double?
  /// The number of downloads, where memory is stated for each.
  var downloads: Int?
  /// Downpipe first.
  var entries: [Entry] = []
  /// What a row without peers says.
  var text: String?

  func entry(_ program: String) -> Entry? { entries.first { $0.program == program && $0.failure == nil } }
  var downpipe: Entry? { entry(DownpipePeer.title) }
  var peers: [Entry] { entries.filter { $0.program != DownpipePeer.title && $0.failure == nil } }
}

/// The measurements of one program, one of each run.
struct Entry: Codable, Sendable {
  let program: String
  var wallSeconds: [Double] = []
  var cpuSeconds: [Double] = []
  var peakMemory: [Double] = []
  /// What the servers sent in the run that was not measured, or the most that passed the proxies in a run.
  var fetchedBytes: Int64?
  /// The peak memory with one download, where memory is stated for each.
  var baseMemory: Double?
  /// Why there is no time.
  var failure: String?

  /// The median of a measure.
  func value(_ measure: Must.Measure, downloads: Int? = nil) -> Double? {
    switch measure {
    case .wall: wallSeconds.median
    case .cpu: cpuSeconds.median
    case .memory: peakMemory.median
    case .memoryEach:
      if let peak = peakMemory.median, let baseMemory, let downloads {
        max(0, peak - baseMemory) / Double(max(1, downloads - 1))
      } else {
        nil
      }
    case .fetched: fetchedBytes.map { Double($0) }
    }
  }
}

extension [Double] {
  /// The middle one, or the mean of the two in the middle.
  var median: Double? {
    guard !isEmpty else { return nil }
    let sorted = sorted()
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
  }
}
