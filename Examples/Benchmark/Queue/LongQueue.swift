@_spi(Ledger) import Downpipe
import Foundation
import Synchronization

#if Postgres
  import DownpipePostgres
#endif

/// The ledgers of this build.
enum QueueLedger {
  static func inFile(_ path: String) -> any Ledger {
    #if SQLite
      SQLiteLedger(path)
    #else
      MemoryLedger()
    #endif
  }

  /// - Throws: `DownloadError` in a build without the trait `Postgres`.
  static func shared(_ address: String, schema: String) throws -> any Ledger {
    #if Postgres
      PostgresLedger(address, schema: schema)
    #else
      throw DownloadError(.invalidPipeline, "this benchmark was built without PostgreSQL: add the trait Postgres")
    #endif
  }
}

/// A ledger with a long queue.
struct LongQueue {
  let ledger: any Ledger
  let downloads: Int
  let hosts: Int

  /// Adds downloads in the way of an import: many with each call.
  func add() async throws -> Duration {
    let downloader = try await downloader(FirstRequest(), startsSuspended: true)
    let time = try await ContinuousClock().measure {
      for start in stride(from: 0, to: downloads, by: 5_000) {
        let requests = (start..<min(start + 5_000, downloads)).compactMap { number -> DownloadRequest? in
          guard let url = URL(string: "https://host\(number % hosts).example/\(number)") else { return nil }
          let tags: Set<String> = number % 2 == 0 ? ["even"] : []
          return DownloadRequest(url, id: "\(number)", priority: Priority(Int16(number % 3)), tags: tags)
        }
        try await downloader.add(contentsOf: requests)
      }
    }
    await downloader.shutdown()
    return time
  }

  /// The time from opening the ledger to the first request to a server.
  func reopen() async throws -> Duration {
    let first = FirstRequest()
    let clock = ContinuousClock()
    let start = clock.now
    let downloader = try await downloader(first)
    let time = await first.time() - start
    await downloader.shutdown()
    return time
  }

  private func downloader(_ source: FirstRequest, startsSuspended: Bool = false) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(startsSuspended: startsSuspended)) {
      source
      MemoryStore()
      PriorityQueue()
      Limits(concurrent: 100, perHost: 2)
      ledger
    }
  }

  /// The times of choosing and leasing one download, with the commit. The engine chooses for all free slots at once.
  func choose(_ samples: Int, _ spread: Spread) async throws -> [Duration] {
    let store = try await ledger.open()
    let now = Date()
    // The hosts of all downloads in front, their tag, or their owner, are those that may not start.
    func request(_ wants: @escaping @Sendable (Candidate) -> LeaseSelection) -> LeaseRequest {
      let isTaken = Mutex(false)
      return LeaseRequest(now: now, until: now + 3_600, scope: spread == .others ? .own : .all) { candidate in
        if isTaken.withLock({ $0 }) { return .stop }
        let answer = wants(candidate)
        if answer == .take { isTaken.withLock { $0 = true } }
        return answer
      }
    }
    try await store.rank(
      by: Ranking(name: "\(spread)") { context in
        switch spread {
        case .saturated: Rank().ascending(context.host == "busy.example" ? 0 : 1).ascending(context.arrival)
        case .gated: Rank().ascending(context.tags.contains("even") ? 0 : 1).ascending(context.arrival)
        case .hosts, .others, .shares, .tags: Rank().ascending(context.arrival)
        }
      })
    if spread == .saturated {
      // As many downloads of a host, in front of all others; a million are enough.
      let count = min(downloads, 1_000_000)
      for start in stride(from: 0, to: count, by: 5_000) {
        let additions = (start..<min(start + 5_000, count)).compactMap { number in
          URL(string: "https://busy.example/\(number)").map {
            LedgerAddition(request: DownloadRequest($0, id: "busy \(number)"), arrival: .max / 2)
          }
        }
        _ = try await store.add(additions, at: now)
      }
    }
    if spread == .others {
      _ = try await store.add(
        (0..<samples + 10).map { number in
          LedgerAddition(
            request: DownloadRequest(URL(filePath: "/\(number)"), id: "own \(number)"),
            arrival: .max / 2 + Int64(number))
        }, at: now)
    }
    let shares = FairShare(by: spread == .tags ? .tag : .host).start()
    var times: [Duration] = []
    for _ in 0..<samples + 10 {
      var request = request { candidate in
        switch spread {
        case .saturated: candidate.host == "busy.example" ? .skip : .take
        case .gated: candidate.tags.contains("even") ? .hold(until: nil) : .take
        case .hosts, .others, .shares, .tags: .take
        }
      }
      if spread.isShared { request.order = shares.order }
      let clock = ContinuousClock()
      let start = clock.now
      let leased = try await store.lease(request)
      times.append(clock.now - start)
      guard leased.count == 1 else { throw DownloadError(.ledger, "\(leased.count) downloads were chosen") }
      shares.started(leased[0].candidate, at: .zero)
    }
    try await store.close()
    // The first choices read the index, once for each opening of a ledger.
    return Array(times.dropFirst(10))
  }

  func changePriorities(_ samples: Int, of count: Int) async throws -> [Duration] {
    let downloader = try await downloader(FirstRequest(), startsSuspended: true)
    // The first change ranks the queue by this downloader's policy.
    try await downloader.update("0") { $0.priority = .high }
    var times: [Duration] = []
    for sample in 0..<samples {
      let id: DownloadID = "\((sample * 7_919) % count)"
      times.append(
        try await ContinuousClock().measure { try await downloader.update(id) { $0.priority = Priority(50) } })
    }
    await downloader.shutdown()
    return times
  }
}

/// A source whose server never answers. It tells when it is asked for the first time.
final class FirstRequest: Source, SourceSession {
  private let (requests, continuation) = AsyncStream<ContinuousClock.Instant>.makeStream(
    bufferingPolicy: .bufferingOldest(1))

  func time() async -> ContinuousClock.Instant {
    for await time in requests { return time }
    return .now
  }

  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    continuation.yield(.now)
    try await Task.sleep(for: .seconds(3_600))
    throw CancellationError()
  }
}
