internal import Foundation
internal import Synchronization

/// The state that the engine shares with its runs, for the life of the downloader.
final class EngineContext: Sendable {
  let options: DownloaderOptions
  let store: any LedgerStore
  let ledgerName: String
  let storage: any Storage
  /// Kept, because the default name is read from the type's metadata.
  let storageName: String
  let hub: EventHub
  let mailbox: Mailbox
  let trust = RangeMemory()
  let furthest = FurthestBytes()
  let rates: LiveRates
  let policies: LivePolicies
  let room = RoomClaims()
  /// The memory for bytes on their way to followers.
  let blocks = BlockPool()
  let connections: HostConnections
  let doubtedMirrors = DoubtedMirrors()
  let placeMemory = PlaceMemory()
  let hostFaults = HostFaults()
  /// What this machine lacks; see ``MachineHealth``.
  let machineFault = Monitor<DownloadError?>(nil)
  let companions = CompanionCache()
  let refusedCopies = RefusedCopies()
  let onErrand = DownloadsOnErrand()
  let deletions = Deletions()
  /// Whether errands end early, because the downloader stops.
  let stopsErrands = Atomic(false)
  /// Whether the shutdown does not wait for errands any longer.
  let areErrandsGivenUp = Atomic(false)
  /// The ``LiveSettings`` of the downloader; `nil` if it has none.
  let settings: (any Sendable)?
  /// Completed when all work has ended, and the ledger is closed.
  let end = Completion()
  private let lastArrival = Mutex<Int64>(0)
  private let watching = Monitor(Watching())

  private struct Watching: Sendable {
    var last = 0
    var names = OrderedTable<Int, String>()
    var areGivenUp = false
  }

  init(
    options: DownloaderOptions, store: any LedgerStore, settings: (any Sendable)? = nil, pipeline: Pipeline
  ) {
    self.settings = settings
    self.options = options
    self.store = store
    ledgerName = pipeline.ledger.name
    let own = pipeline.storage
    storage = RemoteArtifacts(base: own.mayBlock ? BlockingStorage(base: own, executors: options.executors) : own)
    storageName = storage.name
    connections = HostConnections(limit: pipeline.limitPerHost)
    rates = LiveRates(pipeline.rates, time: options.time)
    policies = LivePolicies(retry: pipeline.retry, gates: pipeline.gates)
    hub = EventHub(time: options.time)
    mailbox = Mailbox(probe: options.probe)
  }

  /// Makes a change of the ledger in a turn under a number of its own, and once more if the ledger fails: its answer may have
  /// been lost.
  func change<Answer>(_ body: (_ number: Int64) async throws -> Answer) async throws -> Answer {
    let number = Int64(mailbox.nextNumber)
    do { return try await body(number) } catch let error as DownloadError where error.code == .ledger {
      return try await body(number)
    }
  }

  /// The space of the storage that no running download has claimed; `nil` if the storage cannot tell.
  func availableBytes() async -> Int64? {
    let available = (try? await storage.availableBytes()) ?? nil
    return available.map { max(0, $0) - room.total }
  }

  /// The names of the observers and gates that run, and of the storage for each errand.
  var watchingStages: [String] { watching.read { Array($0.names.values) } }

  /// Runs a stage that watches, where it may block, and keeps its name for as long as it runs.
  func watching(_ name: String, _ body: @escaping @Sendable () async -> Void) async {
    await naming(name) { await executors.blocking(body) }
  }

  /// Keeps the name of a stage for as long as some work of it lasts, which the shutdown waits for.
  func naming(_ name: String, _ body: () async -> Void) async {
    let number = watching.update { stages in
      stages.last += 1
      stages.names[stages.last] = name
      return stages.last
    }
    await body()
    watching.update { $0.names[number] = nil }
  }

  /// Returns when no observer, gate or errand runs, or they are given up, or the task is cancelled.
  func watchersEnd() async { try? await watching.wait { $0.names.isEmpty || $0.areGivenUp } }

  /// Ends the wait for them.
  func giveUpWatchers() { watching.update { $0.areGivenUp = true } }

  var time: any TimeSource { options.time }
  var executors: Executors { options.executors }

  /// Returns a number for the order of arrival, larger than all earlier ones.
  func nextArrival(at now: Date) -> Int64 {
    lastArrival.withLock { last in
      last = max(last + 1, Int64(now.timeIntervalSince1970 * 1_000_000))
      return last
    }
  }
}
