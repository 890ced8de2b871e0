import DownpipeCore
import Foundation

/// The source of a simulated queue: its transfers wait in the middle until the simulation lets them end, and it checks
/// which transfers begin.
final class QueueSource: Source, SourceSession {
  private struct Transfer: Sendable {
    let id: DownloadID
    let candidate: Candidate
    var isHolding = false
    /// Whether the engine has stopped the run, whose slot may have been taken away by lower limits.
    var isStopped = false
    var verdict: Verdict?
  }

  private enum Verdict: Sendable {
    case finish, fail
  }

  private struct State: Sendable {
    var transfers: [UInt64: Transfer] = [:]
    var last: UInt64 = 0
    var finishesAll = false
    var limits: QueueLimits
    /// The downloads that ran when the limits were lowered and may finish.
    var excess: Set<DownloadID> = []
    var forced: Set<DownloadID> = []
    var forbidden: Set<DownloadID> = []
    /// The downloads whose transfers were stopped by the engine.
    var stops: Set<DownloadID> = []
  }

  private let state: Watched<State>
  private let violations: ViolationLog

  init(limits: QueueLimits, violations: ViolationLog) {
    state = Watched(State(limits: limits))
    self.violations = violations
  }

  // MARK: Control

  /// The downloads whose transfers have begun and not ended.
  var active: Set<DownloadID> { Set(state.value.transfers.values.map(\.id)) }

  /// The downloads whose transfers wait for the simulation.
  var holding: Set<DownloadID> {
    Set(state.value.transfers.values.filter { $0.isHolding && $0.verdict == nil }.map(\.id))
  }

  /// The downloads whose transfers were stopped by the engine since ``forgetStops()``.
  var stops: Set<DownloadID> { state.value.stops }

  func forgetStops() { state.update { $0.stops = [] } }

  /// Sets the limits, and the downloads that may begin although they exceed them. The ledger checks their leases.
  func allow(_ limits: QueueLimits, excess: Set<DownloadID> = []) {
    state.update { ($0.limits, $0.excess) = (limits, excess) }
  }

  /// Sets whether the next transfer of a download may exceed the limits.
  func setForced(_ id: DownloadID, _ isForced: Bool) {
    state.update { state in
      if isForced { state.forced.insert(id) } else { state.forced.remove(id) }
    }
  }

  /// Forbids transfers of downloads that were paused or have ended.
  func forbid(_ ids: some Sequence<DownloadID> & Sendable) { state.update { $0.forbidden.formUnion(ids) } }

  func permit(_ ids: some Sequence<DownloadID> & Sendable) { state.update { $0.forbidden.subtract(ids) } }

  func finish(_ id: DownloadID) { decide(.finish, id) }

  func fail(_ id: DownloadID) { decide(.fail, id) }

  private func decide(_ verdict: Verdict, _ id: DownloadID) {
    state.update { state in
      guard let found = state.transfers.first(where: { $1.id == id && $1.isHolding && $1.verdict == nil })
      else { return }
      state.transfers[found.key]?.verdict = verdict
    }
  }

  /// Lets all transfers finish, present and later ones.
  func finishAll() {
    state.update { state in
      state.finishesAll = true
      state.forbidden = []
    }
  }

  // MARK: The files

  static func request(_ number: Int) -> DownloadRequest {
    let id = DownloadID("d\(number)")
    return DownloadRequest(
      URL(filePath: "/").replacing(host: "host\(number % 3).example", path: "/\(number)"), id: id,
      tags: number % 2 == 0 ? ["even"] : [], destination: .init(name: id.rawValue))
  }

  static func bytes(of id: DownloadID) -> [UInt8] {
    let number = Int(id.rawValue.dropFirst()) ?? 0
    return DownloadFixtures.pattern(size: 1_000 * (1 + number * 5 % 8), seed: UInt64(number + 1))
  }

  /// The length that the server states.
  static func announcedSize(of id: DownloadID) -> ByteCount {
    ["d3", "d7"].contains(id) ? .unknown : .known(Int64(bytes(of: id).count))
  }

  // MARK: Source

  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    let bytes = Self.bytes(of: request.id)
    let start = Int(request.range?.start ?? 0)
    let total = Self.announcedSize(of: request.id)
    let announcesLength = total != .unknown
    let rest = Array(bytes[start...])
    let candidate = Candidate(host: request.url.host() ?? "", tags: Self.tags(of: request.id))
    return SourceReply(
      coverage: request.range == nil ? .whole : .range(Int64(start)..<Int64(bytes.count), total: total),
      length: announcesLength ? .known(Int64(rest.count)) : .unknown, validator: Validator(entityTag: EntityTag("v1")),
      body: Body { sink in try await self.push(rest, of: request.id, candidate, into: sink) })
  }

  private static func tags(of id: DownloadID) -> Set<String> {
    (Int(id.rawValue.dropFirst()) ?? 1) % 2 == 0 ? ["even"] : []
  }

  private func push(
    _ bytes: [UInt8], of id: DownloadID, _ candidate: Candidate, into sink: ChunkSink
  ) async throws {
    try Task.checkCancellation()
    let number = begin(Transfer(id: id, candidate: candidate))
    defer {
      state.update { state in
        state.transfers[number] = nil
        state.forced.remove(id)
      }
    }
    let (first, second) = (bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2))
    try sink(first.span.bytes)
    await withTaskCancellationHandler {
      state.update { $0.transfers[number]?.isHolding = true }
      await state.wait { $0.finishesAll || $0.transfers[number]?.verdict != nil }
    } onCancel: {
      state.update { state in
        state.transfers[number]?.isStopped = true
        state.stops.insert(id)
      }
    }
    try Task.checkCancellation()
    if case .fail = state.value.transfers[number]?.verdict { throw DownloadError(.network, "the connection was cut") }
    try sink(second.span.bytes)
  }

  /// Registers a transfer, after checking that it may begin.
  private func begin(_ transfer: Transfer) -> UInt64 {
    let id = transfer.id
    return state.update { state in
      // A run that was stopped may get as far as this, but not further.
      if !Task.isCancelled {
        let others = state.transfers.values.filter { !$0.isStopped && !state.forced.contains($0.id) }
        var running = RunningDownloads()
        for other in others { running.insert(other.candidate) }
        let mayExceed = state.forced.contains(id) || state.excess.contains(id)
        if !mayExceed, !state.limits.admit(transfer.candidate, beside: running) {
          violations.add(
            .limits, "\(id) began beside \(others.map(\.id.rawValue).sorted().joined(separator: ", "))")
        }
        if state.transfers.values.contains(where: { $0.id == id }) {
          violations.add(.oneTransfer, "\(id) began while another transfer of it was running")
        }
        if state.forbidden.contains(id) {
          violations.add(.paused, "\(id) began although it was paused or had ended")
        }
      }
      state.last += 1
      state.transfers[state.last] = transfer
      return state.last
    }
  }
}

extension URL {
  fileprivate func replacing(host: String, path: String) -> URL {
    var components = URLComponents()
    (components.scheme, components.host, components.path) = ("https", host, path)
    return components.url ?? self
  }
}
