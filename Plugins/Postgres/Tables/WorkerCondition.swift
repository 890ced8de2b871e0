#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation

  /// How a worker fares: what its row in `opening` shows to those who look at the fleet.
  struct WorkerCondition: Sendable, Codable, Hashable {
    /// The most causes; others are left out.
    private static let mostCauses = 50

    /// What the machine lacks, so that it pauses.
    private(set) var fault: String?
    /// The number of downloads that have failed at this worker, by ``cause(_:)``.
    private(set) var failures: [String: Int] = [:]
    /// Whether the row has an older fault. Failures can wait for the next sign of life.
    private(set) var isNews = false

    private enum CodingKeys: CodingKey { case fault, failures }

    /// An error in `failures`: its code, and the HTTP status if it has one.
    static func cause(_ error: DownloadError) -> String {
      ([error.code.rawValue] + (error.httpStatus.map { ["\($0)"] } ?? [])).joined(separator: " ")
    }

    mutating func note(_ fault: DownloadError?) {
      self.fault = fault.map { "\($0.message.prefix(1000))" }
      isNews = true
    }

    /// Notes what was saved.
    mutating func note(_ saves: [LedgerSave], _ saved: [Bool]) {
      for (save, isSaved) in zip(saves, saved) where isSaved && save.record.phase == .failed {
        guard let cause = save.record.error.map(Self.cause) else { continue }
        guard failures[cause] != nil || failures.count < Self.mostCauses else { continue }
        failures[cause, default: 0] += 1
      }
    }

    /// The text for the row, which has it then.
    mutating func take() -> String {
      isNews = false
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Reads what a row has; nothing if it is damaged, or of an earlier version.
    static func read(_ text: String?) -> WorkerCondition {
      text.flatMap { try? JSONDecoder().decode(WorkerCondition.self, from: Data($0.utf8)) } ?? WorkerCondition()
    }
  }
#endif
