import ArgumentParser
import Downpipe
import Foundation

#if Postgres
  import DownpipePostgres
#endif

/// `downpipe status`: shows the workers and the queue of a database.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the workers and the queue of a ledger that machines share.",
    discussion: "Speeds are those of the second in which the command looks, as far as checkpoints show them."
  )

  @Option(help: ArgumentHelp("The ledger: postgresql://user@host/database.", valueName: "place"))
  var ledger: String

  @Flag(help: "Print one JSON object.")
  var json = false

  func run() async throws {
    guard case .database(let address) = try LedgerLocation(ledger) else {
      throw UsageError("--ledger: “downpipe status” is for databases: use “downpipe list” for a ledger in a file")
    }
    #if Postgres
      let status: FleetStatus
      do {
        status = try await PostgresLedger(address).status()
      } catch let error as DownloadError {
        throw UsageError(error.sentence)
      }
      try OutputFile.standardOutput.write(json ? try Self.json(status) : Self.text(status))
    #else
      try LedgerLocation.database(address).check()
    #endif
  }

  #if Postgres
    static func text(_ status: FleetStatus) -> String {
      let now = status.observedAt
      var lines: [String] = []
      let phases = DownloadState.Phase.allCases.compactMap { phase in
        status.counts[phase].map { "\(phase.rawValue) \($0)" }
      }
      lines.append("queue: " + (phases.isEmpty ? "empty" : phases.joined(separator: ", ")))
      if let failures = Self.text(status.failures) { lines.append("failures: " + failures) }
      if let end = status.firstLeaseEnd {
        let seconds = Int(end.timeIntervalSince(now).rounded())
        lines.append(seconds >= 0 ? "first lease ends in \(seconds) s" : "first lease ended \(-seconds) s ago")
      }
      lines.append("workers: \(status.workers.count { $0.isHeard }) heard of in the last 30 s")
      for worker in status.workers {
        let seen = Int(now.timeIntervalSince(worker.seenAt).rounded())
        var columns = [
          worker.host.isEmpty ? "?" : worker.host, "\(worker.process)", "\(worker.running) running",
          ByteFormat.binary.speed(Double(worker.bytesPerSecond)),
        ]
        if !worker.isHeard { columns.append("not heard of for \(seen) s") }
        if let failures = Self.text(worker.failures) { columns.append("failed: " + failures) }
        if let fault = worker.fault { columns.append("pauses: " + fault) }
        lines.append("  " + columns.map(\.harmless).joined(separator: "\t"))
      }
      return lines.joined(separator: "\n") + "\n"
    }

    /// Causes by their number; `nil` without any.
    private static func text(_ failures: [String: Int]) -> String? {
      guard !failures.isEmpty else { return nil }
      let sorted = failures.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      return sorted.map { "\($0.key.harmless) \($0.value)" }.joined(separator: ", ")
    }

    private struct JSON: Encodable {
      struct Worker: Encodable {
        var host: String
        var process: Int32
        var openedAt: Date
        var seenAt: Date
        var isHeard: Bool
        var running: Int
        var bytesPerSecond: Int64
        var leaseEnd: Date?
        var fault: String?
        var failures: [String: Int]
      }

      var queue: [String: Int]
      var failures: [String: Int]
      var workers: [Worker]
    }

    static func json(_ status: FleetStatus) throws -> String {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      encoder.dateEncodingStrategy = .iso8601
      let value = JSON(
        queue: Dictionary(uniqueKeysWithValues: status.counts.map { ($0.key.rawValue, $0.value) }),
        failures: status.failures,
        workers: status.workers.map {
          JSON.Worker(
            host: $0.host, process: $0.process, openedAt: $0.openedAt, seenAt: $0.seenAt, isHeard: $0.isHeard,
            running: $0.running, bytesPerSecond: $0.bytesPerSecond, leaseEnd: $0.leaseEnd, fault: $0.fault,
            failures: $0.failures)
        })
      return String(decoding: try encoder.encode(value), as: UTF8.self) + "\n"
    }
  #endif
}
