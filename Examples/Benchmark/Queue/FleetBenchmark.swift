import ArgumentParser
import Downpipe
import Foundation

/// What the queue of a fleet costs: workers, each a process, drain a queue in PostgreSQL of downloads without bytes.
struct FleetBenchmark: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet",
    abstract: "Measure how many downloads without bytes workers take out of one PostgreSQL queue in a second.")

  @Option(help: "The connection URI of a database. The benchmark makes and drops schemas of its own in it.")
  var ledger: String
  @Option(help: "The number of downloads of each measurement.") var downloads = 20_000
  @Option(help: "The number of hosts.") var hosts = 200
  @Option(help: "The numbers of workers, one measurement for each.") var workers = [1, 2, 4, 8]
  @Option(help: "How many downloads a worker runs at once.") var jobs = 16
  @Option(help: "How often each number of workers is measured.") var repeats = 3
  @Option(help: "The folder of the files. In memory, such as /dev/shm, the disk is not measured.")
  var folder = NSTemporaryDirectory()
  @Option(help: .hidden) var workIn: String?

  func validate() throws {
    guard downloads > 0, hosts > 0, jobs > 0, repeats > 0, workers.allSatisfy({ $0 > 0 }) else {
      throw ValidationError("The numbers must be positive.")
    }
  }

  func run() async throws {
    if let workIn { return try await work(in: workIn) }
    let place = URL(filePath: folder).appending(path: "downpipe-benchmark-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: place) }
    for count in workers {
      var rates: [Double] = []
      for _ in 0..<repeats { rates.append(try await measure(count, place)) }
      rates.sort()
      let shown = rates.map { String(format: "%.0f", $0) }.joined(separator: ", ")
      print("\(count) workers: \(String(format: "%.0f", rates[rates.count / 2])) downloads per second (\(shown))")
    }
  }

  private func measure(_ count: Int, _ place: String) async throws -> Double {
    let schema = "bench_\(UInt32.random(in: 0...UInt32.max))"
    let filler = try await downloader(in: schema, MemoryStore(), scope: .ids([]))
    for start in stride(from: 0, to: downloads, by: 5_000) {
      try await filler.add(
        contentsOf: (start..<min(start + 5_000, downloads)).compactMap { number in
          URL(string: "nothing://host\(number % hosts).example/\(number)").map { DownloadRequest($0, id: "\(number)") }
        })
    }
    let begin = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count { group.addTask { try await start(in: schema, "\(place)/\(schema)-\(number)") } }
      try await group.waitForAll()
    }
    let time = begin.duration(to: .now)
    let finished = try await filler.counts()[.finished] ?? 0
    await filler.shutdown()
    guard finished == downloads else { throw DownloadError(.ledger, "\(finished) of \(downloads) have finished") }
    return Double(downloads) / (time / .seconds(1))
  }

  private func start(in schema: String, _ folder: String) async throws {
    let process = Process()
    process.executableURL = URL(filePath: CommandLine.arguments[0])
    process.arguments = ["fleet", "--ledger", ledger, "--jobs", "\(jobs)", "--folder", folder, "--work-in", schema]
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      process.terminationHandler = { process in
        continuation.resume(
          with: process.terminationStatus == 0 ? .success(()) : .failure(DownloadError(.ledger, "a worker has failed")))
      }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
  }

  private func work(in schema: String) async throws {
    let downloader = try await downloader(in: schema, FileStore(folder), scope: .all)
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
  }

  private func downloader(in schema: String, _ storage: some Storage, scope: LeaseScope) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(scope: scope)) {
      EmptySource()
      storage
      PriorityQueue()
      Limits(concurrent: jobs)
      try QueueLedger.shared(ledger, schema: schema)
    }
  }
}

/// A source whose files have one byte.
private struct EmptySource: Source, SourceSession {
  func accepts(_ url: URL) -> Bool { url.scheme == "nothing" }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    SourceReply(coverage: .whole, length: .known(1), body: .bytes([0]))
  }
}
