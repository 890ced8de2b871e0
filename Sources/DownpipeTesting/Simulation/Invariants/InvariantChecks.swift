@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

/// Checks the invariants of a simulation where the events happen.
final class InvariantChecks: Sendable {
  struct State: Sendable {
    var records: [DownloadID: DownloadRecord] = [:]
    /// In the order in which they were added first.
    var order: [DownloadID] = []
    /// The URLs that each download was ever asked for.
    var urls: [DownloadID: Set<URL>] = [:]
    /// The last step after which there was nothing to do.
    var lastIdleStep = 0
    var isBusy = false
    var limits: [Int: ReplacedLimits] = [:]
    /// The transfers of each download, by the process.
    var transfers: [DownloadID: [Int]] = [:]
    /// Whether processes may transfer.
    var suspensions: [Int: Suspension] = [:]
    var usesDisk = false
    /// The downloads that processes have given back after a fault of their machines.
    var givenBack: [DownloadID: ObjectIdentifier] = [:]
    /// The exports of downloads' bytes that are in progress.
    var exports: [DownloadID: Int] = [:]
    /// Downloads that have got wrong bytes, which only a digest shows. Users may have given up the digest since.
    var deceived: Set<DownloadID> = []
    /// The owners with an open ledger.
    var owners: Set<String> = []
    /// Downloads whose steps were given up: the bytes may have been moved into what the steps have made. With the ranges
    /// that the ledger claimed then.
    var movedBytes: [DownloadID: ByteRangeSet] = [:]
  }

  let world: World
  private let network: SimulatedNetwork
  let disk: SimulatedDisk
  private let names: Set<Invariant.Name>
  private let own: [Invariant]
  let state = Mutex(State())
  let fetched = Mutex(FetchedBytes())

  init(_ world: World, _ network: SimulatedNetwork, _ disk: SimulatedDisk, _ invariants: [Invariant]) {
    self.world = world
    self.network = network
    self.disk = disk
    names = Set(invariants.map(\.name))
    own = invariants.filter { $0.check != nil }
  }

  func report(_ name: Invariant.Name, _ text: @autoclosure () -> String) {
    if names.contains(name) { world.report(name, text()) }
  }

  // MARK: Invariants of the user's own

  func check(at moment: Invariant.Moment) {
    guard own.contains(where: { $0.moment == moment }) else { return }
    let view = view
    for invariant in own where invariant.moment == moment {
      if let text = invariant.check?(view) { world.report(invariant.name, text) }
    }
  }

  var view: SimulationView {
    let (records, transfers) = state.withLock { state in
      (
        state.order.compactMap { state.records[$0] },
        state.transfers.sorted { $0.key.rawValue < $1.key.rawValue }.flatMap { id, processes in
          processes.map { _ in id }
        }
      )
    }
    return SimulationView(
      time: world.clock.now, date: world.date, records: records, transfers: transfers)
  }

  var records: [DownloadRecord] { view.records }

  func record(_ id: DownloadID) -> DownloadRecord? { state.withLock { $0.records[id] } }

  // MARK: Processes

  func started(_ process: SimulatedProcess, usesDisk: Bool) {
    state.withLock { state in
      state.usesDisk = usesDisk
      state.suspensions[process.number] = nil
      state.limits[process.number] = process.usesLimits ? ReplacedLimits(process.limits) : nil
    }
    // What the ledger claims has to have survived the death of the last process.
    for record in records { checkClaims(record) }
  }

  func died(_ process: SimulatedProcess) {
    let records = state.withLock { state in
      for (id, owners) in state.transfers {
        let others = owners.filter { $0 != process.incarnation }
        state.transfers[id] = others.isEmpty ? nil : others
      }
      return state.records
    }
    // Meanwhile any number of bytes may arrive: while a disk or a ledger is slow, or in no time.
    let isSteady =
      world.configuration.slowDisk == 0 && world.configuration.slowLedger == 0
      && world.configuration.servers.allSatisfy { $0.bandwidth != nil }
    fetched.withLock { $0.died(process.incarnation, isSteady ? world.checkpoints : nil) { records[$0] } }
  }

  /// Notes that a ledger was opened or closed for an owner.
  func set(isAlive: Bool, owner: String) {
    state.withLock { state in
      if isAlive { state.owners.insert(owner) } else { state.owners.remove(owner) }
    }
  }

  func isAlive(owner: String) -> Bool { state.withLock { $0.owners.contains(owner) } }

  // MARK: Transfers

  func transferBegan(_ process: SimulatedProcess, _ id: DownloadID) {
    guard process.isAlive else { return }
    let others = state.withLock { state in
      state.transfers[id, default: []].append(process.incarnation)
      return state.transfers[id, default: []].filter { $0 != process.incarnation }
    }
    if !others.isEmpty { report(.oneWriter, "\(id) is transferred by two processes at once") }
  }

  func isExported(_ id: DownloadID) -> Bool { state.withLock { $0.exports[id, default: 0] > 0 } }

  func exports(_ id: DownloadID, begins: Bool) { state.withLock { $0.exports[id, default: 0] += begins ? 1 : -1 } }

  func deceived(_ id: DownloadID) { state.withLock { _ = $0.deceived.insert(id) } }

  /// Notes that a download goes on with the bytes of another one, and with what is wrong about them.
  func continues(_ id: DownloadID, withBytesOf other: DownloadID) {
    state.withLock { if $0.deceived.contains(other) { $0.deceived.insert(id) } }
  }

  /// Notes that a whole file takes the place of the bytes on disk while it is being received: the ledger learns of it with the
  /// next checkpoint. Until then the size, the marks and the comparison with what the server sends show that they differ.
  func cut(_ key: PartialKey) {
    state.withLock { state in
      guard state.transfers[key.id] != nil, let record = state.records[key.id] else { return }
      state.movedBytes[key.id] = record.checkpoint.ranges
    }
  }

  /// Notes that a partial was to be opened while it was open.
  func opened(_ key: PartialKey, _ process: SimulatedProcess, besides owner: SimulatedProcess) {
    // A download may start while its bytes are exported: it waits, or the export is refused.
    guard process === owner, state.withLock({ $0.exports[key.id, default: 0] }) == 0 else { return }
    report(.oneWriter, "process \(process.number) works for \(key.id) twice at once: its partial is open already")
  }

  func transferEnded(_ process: SimulatedProcess, _ id: DownloadID) {
    state.withLock { state in
      guard let index = state.transfers[id]?.firstIndex(of: process.incarnation) else { return }
      state.transfers[id]?.remove(at: index)
      if state.transfers[id]?.isEmpty == true { state.transfers[id] = nil }
    }
  }

  // MARK: Bytes that are received

  func replied(_ reply: SourceReply, to request: SourceRequest, _ process: SimulatedProcess) {
    fetched.withLock { $0.replied(reply, to: request, process.incarnation) }
  }

  /// What a download has received so far.
  func received(of id: DownloadID) -> FetchedBytes.Received { fetched.withLock { $0.received(of: id) } }

  /// Passes the chunks of a body on, and checks those that were accepted.
  ///
  /// - Parameters:
  ///   - range: The bytes of the file that the body has.
  ///   - received: What the download had received when it asked for the body.
  func receiving(
    _ range: ByteRange, of content: FileContent, for request: SourceRequest, _ process: SimulatedProcess,
    beside received: FetchedBytes.Received, into sink: @escaping ChunkSink,
    _ work: (@escaping ChunkSink) async throws -> Void
  ) async throws {
    let isSegmented = record(request.id)?.request.tags.contains(SimulatedSegments.tag) == true
    let body = fetched.withLock { fetched in
      fetched.begin(
        request, content, from: range.lowerBound, process.incarnation, beside: received, isSegmented: isSegmented,
        failures: world.failures)
    }
    let state = Mutex((body: body, position: range.lowerBound))
    defer { fetched.withLock { $0.ended(body) } }
    try await work { chunk in
      try sink(chunk)
      let wrong = state.withLock { state in
        let received = state.position..<state.position + Int64(chunk.byteCount)
        state.position = received.upperBound
        return self.fetched.withLock { $0.received(received, of: &state.body, failures: self.world.failures) }
      }
      if let wrong { self.report(.refetching, wrong) }
    }
  }

  /// Notes that a reply does not fit the bytes on disk: the file is fetched from the start.
  func restarted(_ id: DownloadID) { fetched.withLock { $0.restarted(id) } }

  /// Whether the ledger knows enough of the file of a request to tell a message in its place: its media type, and that it is not
  /// empty.
  func isKnown(_ request: SourceRequest) -> Bool {
    guard let record = record(request.id), record.checkpoint.mediaType != nil, record.checkpoint.total.bytes ?? 0 > 7
    else {
      return false
    }
    return !record.isOutdated && (record.request.url == request.url || record.request.mirrors.contains(request.url))
  }

  /// Whether in addition bytes of it are on disk, which the user wants to go on with, and are of the present version.
  func isKnown(_ request: SourceRequest, of version: Validator?) -> Bool {
    guard isKnown(request), let record = record(request.id) else { return false }
    let known = record.checkpoint.validator
    return record.checkpoint.ranges.byteCount > 7 && record.refreshing == nil && !record.versions.mayChange
      && record.phase.isActive && known?.entityTag == version?.entityTag && known?.lastModified == version?.lastModified
  }

  /// Notes a fault of a server.
  func fault(_ fault: ServerFault, of request: SourceRequest, from process: SimulatedProcess) {
    fetched.withLock { fetched in
      fetched.doubt(request.id, hasWrongCopy: fault == .wrongCopy)
      if Self.contradictions.contains(fault) { fetched.distrust(request, process.incarnation) }
    }
  }

  /// The faults of ranges that contradict what is known: the whole file is asked for.
  private static let contradictions: Set<ServerFault> = [.wrongTotal, .otherBytes, .wrongCopy]

  func stopped(_ id: DownloadID, reason: String) { fetched.withLock { $0.stopped(id, reason: reason) } }

  // MARK: Gates

  func gate(of process: SimulatedProcess, isOpen: Bool) { change(process) { $0.isGateClosed = !isOpen } }

  /// Notes that a call ends the suspension of all downloads of a process.
  func goesOn(_ process: SimulatedProcess) {
    change(process) { suspension in
      suspension.isSuspended = false
      suspension.endings += 1
    }
  }

  func endingsOfSuspensions(_ process: SimulatedProcess) -> Int {
    state.withLock { $0.suspensions[process.number]?.endings ?? 0 }
  }

  /// Notes that all downloads of a process are suspended, unless a call has ended that meanwhile.
  func isSuspended(_ process: SimulatedProcess, unlessEndedAfter endings: Int) {
    change(process) { if $0.endings == endings { $0.isSuspended = true } }
  }

  private func change(_ process: SimulatedProcess, _ body: (inout Suspension) -> Void) {
    state.withLock { state in
      body(&state.suspensions[process.number, default: Suspension()])
      state.suspensions[process.number]?.update(at: world.clock.now)
    }
  }

  /// Checks what must hold when no job can run.
  func rest(_ processes: [SimulatedProcess]) {
    for process in processes where process.isAlive {
      // The engine may wait for a slow disk or ledger before it looks at its gates.
      guard let since = state.withLock({ $0.suspensions[process.number]?.closedSince }),
        !world.clock.sleeps(of: process.executor).contains(.simulated)
      else { continue }
      let ids = state.withLock { $0.transfers.filter { $0.value.contains(process.incarnation) }.keys }
      if let id = ids.min(by: { $0.rawValue < $1.rawValue }) {
        report(.gates, "\(id) is being transferred, although it may not since \(since)")
      }
    }
    check(at: .atRest)
  }

  // MARK: Files

  func published(_ request: DownloadRequest, at path: String) {
    guard let bytes = disk.contents.files[path]?.bytes else { return }
    let urls = state.withLock { $0.urls[request.id] ?? [] }.union([request.url] + request.mirrors)
    checkVersion(bytes, of: request, from: urls)
  }

  /// Checks that a finished download has a version of what it is asked for now.
  func checkFinished(_ record: DownloadRecord) {
    guard state.withLock({ $0.usesDisk }), record.phase == .finished, let stored = record.steps.artifact else { return }
    let path = stored.path.map { $0.hasPrefix("/") ? $0 : "\(SimulatedStorage.root)/\($0)" } ?? ""
    guard let bytes = disk.contents.files[path]?.bytes else {
      return report(.wholeVersions, "\(record.id) has finished, but its file \(path) does not exist")
    }
    checkVersion(bytes, of: record.request, from: Set([record.request.url] + record.request.mirrors))
  }

  private func checkVersion(_ bytes: SparseBytes, of request: DownloadRequest, from urls: Set<URL>) {
    if let digest = request.expectedDigests.first {
      if bytes.digest != digest { report(.wholeVersions, "\(request.id) does not have the expected digest") }
      return
    }
    // A mirror that has sent the file may have been taken out of the request since.
    let places = urls.union(urls.flatMap { SimulatedRequest.copies(of: $0, in: world.configuration) })
    let versions = places.flatMap(network.versions)
    if state.withLock({ $0.deceived.contains(request.id) }) { return }
    if !versions.contains(where: bytes.equals) {
      report(
        .wholeVersions,
        "\(request.id) has \(bytes.size) bytes, which are none of the \(versions.count) versions of its file")
    }
  }
}
