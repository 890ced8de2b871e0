@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

/// The base of most engine tests: fakes for all stages, without network and disk, and with virtual time.
protocol EngineSuite: Sendable {
  var bytes: [UInt8] { get }
  var url: URL { get }
  var time: VirtualTime { get }
  var storage: FakeStorage { get }
  var ledger: MemoryLedger { get }
}

extension EngineSuite {
  var options: DownloaderOptions {
    DownloaderOptions(time: time, random: { 0.5 }, resumeValidation: .overlap(1000))
  }

  func downloader(
    _ source: FakeSource, gates: [FakeGate] = [], observers: [RecordingObserver] = [],
    retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp), ledger: (any Ledger)? = nil, startsSuspended: Bool = false
  ) async throws -> Downloader {
    var options = options
    options.startsSuspended = startsSuspended
    return try await Downloader(options: options) {
      source
      for gate in gates { gate }
      for observer in observers { observer }
      retry
      storage
      AnyLedger(ledger ?? self.ledger)
    }
  }
}

struct AnyLedger: Ledger {
  let base: any Ledger
  init(_ base: any Ledger) { self.base = base }
  func open() async throws -> any LedgerStore { try await base.open() }
}

struct NeverNeeded: UniversalPostProcessor {
  func isNeeded(in context: ProcessingContext) -> Bool { false }
  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    throw DownloadError(.processing, "this step is not needed")
  }
}

struct BrokenLedger: Ledger {
  func open() async throws -> any LedgerStore { throw DownloadError(.ledger, "no such folder") }
}

extension EngineSuite {
  /// Lets the engine's work proceed as far as possible, by waiting for the engine's actor repeatedly.
  func settle(_ downloader: Downloader) async throws {
    for _ in 0..<50 {
      _ = try await downloader.status(of: "no such download")
      await Task.yield()
    }
  }

  /// Runs work while the clock advances from one due time to the next.
  func advancing<Value: Sendable>(_ work: @Sendable () async throws -> Value) async throws -> Value {
    let clock = Task {
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    defer { clock.cancel() }
    return try await work()
  }

  func limit(_ count: Int) -> FakeAdmissionPolicy {
    FakeAdmissionPolicy { _, running in running.total < count ? .admitted : .full("\(count) of \(count)") }
  }

  func requests(_ count: Int) -> [DownloadRequest] {
    (0..<count).map { DownloadRequest(url.appending(path: "\($0)"), id: DownloadID("d\($0)")) }
  }

  func code(_ error: any Error) -> DownloadError.Code? { (error as? DownloadError)?.code }
}
