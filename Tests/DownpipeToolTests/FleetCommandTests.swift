import ArgumentParser
import DownpipeCore
import DownpipeServer
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

#if Postgres
  import DownpipePostgres
#endif

/// The commands for ledgers that machines share.
@Suite(.endsHangs)
struct FleetCommandTests {
  @Test("A ledger is a file or a database, by how it is written")
  func locations() throws {
    for text in ["postgres://a@h/d", "postgresql://h/d?sslmode=require", "PostgreSQL://h"] {
      #expect(try LedgerLocation(text) == .database(text) && LedgerLocation(text).isShared)
    }
    #expect(try LedgerLocation("/tmp/postgres:/x") == .file("/tmp/postgres:/x"))
    #expect(try !LedgerLocation("ledger.sqlite").isShared)
    #expect {
      try LedgerLocation("dbname=x password=secret")
    } throws: {
      ($0 as? UsageError).map { !"\($0)".contains("secret") } ?? false
    }
    #expect(try LedgerLocation("/nowhere/ledger").isMissing && !LedgerLocation("postgres://h/d").isMissing)
  }

  private static let artifact = Artifact(location: .path("/a"), name: "a", size: .known(5))
  private static let loss: (DownloadEvent.Kind, Bool) = (
    .attemptFailed(DownloadError(.notOwner, "another owner has taken over this download")), true
  )

  @Test(
    "A worker counts what it has finished, and not what another one has that has taken it over",
    arguments: [
      ([(.started(attempt: 1, from: 0), true), (.state(.transferring), true), (.state(.finished(artifact)), true)], 1),
      (
        [
          (.started(attempt: 1, from: 0), true), loss, (.state(.transferring), false),
          (.state(.finished(artifact)), false),
        ], 0
      ),
      // Taken back, with all bytes here: no request is sent.
      (
        [
          (.started(attempt: 1, from: 0), true), loss, (.state(.transferring), true),
          (.state(.finished(artifact)), true),
        ], 1
      ),
      // Its end was read from the ledger, because the answer was lost.
      ([(.started(attempt: 1, from: 0), true), (.state(.finished(artifact)), false)], 1),
    ] as [([(DownloadEvent.Kind, Bool)], Int)])
  func workLog(_ events: [(kind: DownloadEvent.Kind, isOwn: Bool)], finished: Int) async throws {
    let request = try DownloadRequest("https://example.org/a", id: "a")
    let log = WorkLog(isJSON: true, isQuiet: true)
    let (stream, continuation) = AsyncStream<DownloadEvent>.makeStream()
    for event in events { continuation.yield(DownloadEvent(request, event.kind, isOwn: event.isOwn)) }
    continuation.finish()
    await log.observe(stream)
    #expect(log.counts.tally.finished == finished && log.counts.running == 0)
  }

  @Test("A download counts as failed until it has finished or is removed")
  func failures() async throws {
    let artifact = Self.artifact
    let failure = DownloadState.failed(DownloadError(.timedOut, ""))
    for (ends, expected) in [
      ([.state(failure)], 1), ([.state(failure), .started(attempt: 2, from: 0), .state(.finished(artifact))], 0),
      ([.state(failure), .state(.finished(artifact))], 0), ([.state(failure), .removed], 0),
      ([.state(.finished(artifact))], 0),
    ] as [([DownloadEvent.Kind], Int)] {
      let request = try DownloadRequest("https://example.org/a", id: "a")
      let log = WorkLog(isJSON: true, isQuiet: true)
      let (events, continuation) = AsyncStream<DownloadEvent>.makeStream()
      for kind in [.started(attempt: 1, from: 0)] + ends { continuation.yield(DownloadEvent(request, kind)) }
      continuation.finish()
      await log.observe(events)
      #expect(log.counts.failed.count == expected, "\(ends)")
    }
  }

  @Test("Addresses to listen at")
  func addresses() {
    func parts(_ text: String) -> ListenAddress? { WorkerEndpoint.Address(argument: text)?.listen }
    #expect(parts("9464") == .tcp(host: "127.0.0.1", port: 9464))
    #expect(parts("0.0.0.0:80") == .tcp(host: "0.0.0.0", port: 80))
    #expect(parts("[::1]:80") == .tcp(host: "::1", port: 80))
    #expect(parts("unix:/run/worker") == .unix(path: "/run/worker"))
    for text in ["", "x", ":80", "1:65536", "-1", "host:"] { #expect(parts(text) == nil, "\(text)") }
  }

  @Test("The speed of all workers is a rate beside that of this one")
  func rates() throws {
    let command = try WorkCommand.parse(["--limit-rate", "2M", "--fleet-limit-rate", "500k", "--fleet-per-host", "3"])
    var settings = command.transfer.settings(directory: "/d", ledger: nil)
    (settings.fleetRate, settings.fleetPerHost) = (command.fleetLimitRate, command.fleetPerHost)
    let pipeline = try Pipeline(settings)
    #expect(pipeline.rates.map(\.summary) == ["2.10 MB/s", "512 KB/s at all workers"])
    #expect(pipeline.admission.map(\.hasSharedLimits) == [false, true])
    #expect(throws: (any Error).self) { try WorkCommand.parse(["--fleet-limit-rate", "fast"]) }
  }

  #if Postgres
    @Test("The status names the phases, the causes of failures, and workers that are not heard of")
    func statusText() {
      let now = Date(timeIntervalSince1970: 1_800_000_000)
      func worker(_ host: String, heard isHeard: Bool, lease: Double?) -> FleetStatus.Worker {
        FleetStatus.Worker(
          host: host, process: 7, openedAt: now, seenAt: now.addingTimeInterval(-90), isHeard: isHeard, running: 2,
          bytesPerSecond: 3 << 20, leaseEnd: lease.map(now.addingTimeInterval))
      }
      var status = FleetStatus()
      status.observedAt = now
      #expect(StatusCommand.text(status) == "queue: empty\nworkers: 0 heard of in the last 30 s\n")
      status.counts = [.waiting: 3, .failed: 2]
      status.failures = ["timedOut": 1, "httpStatus 404": 9]
      status.workers = [worker("a\u{1B}[31m", heard: true, lease: 20), worker("", heard: false, lease: -5)]
      let lines = StatusCommand.text(status).split(separator: "\n").map(String.init)
      #expect(lines[0] == "queue: waiting 3, failed 2")
      #expect(lines[1] == "failures: httpStatus 404 9, timedOut 1")
      #expect(lines[2] == "first lease ended 5 s ago")
      #expect(lines[3] == "workers: 1 heard of in the last 30 s")
      #expect(lines[4].hasSuffix("\t7\t2 running\t3.00 MiB/s") && !lines[4].contains("\u{1B}"))
      #expect(lines[5] == "  ?\t7\t2 running\t3.00 MiB/s\tnot heard of for 90 s")
      status.workers[0].failures = ["timedOut": 1, "noSpace": 2]
      status.workers[0].fault = "the disk is full"
      #expect(StatusCommand.text(status).contains("\tfailed: noSpace 2, timedOut 1\tpauses: the disk is full\n"))
    }
  #endif
}
