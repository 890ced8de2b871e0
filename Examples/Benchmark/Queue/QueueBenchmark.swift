import ArgumentParser
import Downpipe
import Foundation

/// A queue of a million downloads or more in an SQLite ledger: adding, reopening, choosing, changing.
struct QueueBenchmark: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue",
    abstract: "Measure a long queue: adding, reopening, choosing the next download, changing priorities.")

  @Option(help: "The number of downloads.") var downloads = 1_000_000
  @Option(help: "The number of hosts.") var hosts = 10_000
  @Option(
    name: .customLong("ledger"),
    help: "The connection URI of a PostgreSQL database. The benchmark makes a schema of its own in it.")
  var shared: String?
  @Option(help: "The folder of the ledger. In memory, such as /dev/shm, the disk is not measured.")
  var folder = NSTemporaryDirectory()
  @Option(help: "The number of choices and changes to take the median of.") var samples = 1_000

  func validate() throws {
    guard downloads > 0, hosts > 0, samples > 0 else { throw ValidationError("The numbers must be positive.") }
  }

  func run() async throws {
    let place = URL(filePath: folder).appending(path: "downpipe-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: place) }
    let ledger =
      try shared.map { try QueueLedger.shared($0, schema: "bench_\(UInt32.random(in: 0...UInt32.max))") }
      ?? QueueLedger.inFile(place.appending(path: "ledger.sqlite").path)
    let queue = LongQueue(ledger: ledger, downloads: downloads, hosts: hosts)

    print("\(downloads) downloads over \(hosts) hosts, 2 at once from each")
    report("added", try await queue.add(), per: downloads)
    report("reopened, the first byte asked for", try await queue.reopen())
    for spread in Spread.allCases {
      report("next one chosen, \(spread.rawValue)", median: try await queue.choose(samples, spread))
    }
    report("priority of one changed", median: try await queue.changePriorities(samples, of: downloads))
    print("most memory used: \(Memory.peak.map { "\($0 >> 20) MiB" } ?? "unknown on this system")")
  }

  private func report(_ what: String, _ time: Duration, per count: Int = 1) {
    let each = count > 1 ? ", \((time / count).shown) each" : ""
    print("\(what): \(time.shown)\(each)\(Memory.now.map { ", \($0 >> 20) MiB in use" } ?? "")")
  }

  private func report(_ what: String, median times: [Duration]) {
    let sorted = times.sorted()
    guard let longest = sorted.last else { return }
    print("\(what): \(sorted[sorted.count / 2].shown), at most \(longest.shown)")
  }
}

/// How the downloads that wait in front are spread.
enum Spread: String, CaseIterable {
  case hosts = "all hosts free"
  case saturated = "as many in front all of one saturated host"
  case gated = "those in front all behind a closed gate"
  case others = "those in front all of another command"
  case shares = "hosts in turn by FairShare"
  case tags = "two tags in turn by FairShare"

  var isShared: Bool { self == .shares || self == .tags }
}

extension Duration {
  /// The duration with three digits.
  var shown: String {
    let seconds = self / .seconds(1)
    if seconds >= 1 { return String(format: "%.2f s", seconds) }
    return seconds >= 0.001 ? String(format: "%.1f ms", seconds * 1e3) : String(format: "%.0f µs", seconds * 1e6)
  }
}
