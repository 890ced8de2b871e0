import DownpipeCore
import DownpipeTesting
import Foundation

/// A source whose bodies end when and how a test decides, and which checks at any time what may run.
final class DrivenSource: Source, SourceSession {
  /// How a body continues.
  enum Verdict: Sendable {
    case finish
    case fail(DownloadError)
  }

  private struct State: Sendable {
    var active: [UInt64: DownloadID] = [:]
    var last: UInt64 = 0
    var verdicts: [UInt64: Verdict] = [:]
    var finishesAll = false
    var limit = Int.max
    var perHost = Int.max
    var hosts: [DownloadID: String] = [:]
    var forbidden: Set<DownloadID> = []
    var violations: [String] = []
  }

  private let state = Watched(State())
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The rules that were broken.
  var violations: [String] { state.value.violations }
  /// The bodies that are being read.
  var active: [DownloadID] { Array(state.value.active.values) }

  /// Sets the number of bodies that may be read at the same time.
  func allow(_ limit: Int, perHost: Int) {
    state.update {
      $0.limit = limit
      $0.perHost = perHost
    }
  }

  /// Forbids new bodies of the download.
  func forbid(_ id: DownloadID) { state.update { _ = $0.forbidden.insert(id) } }

  func permit(_ id: DownloadID) { state.update { _ = $0.forbidden.remove(id) } }

  func permitAll() { state.update { $0.forbidden = [] } }

  /// Ends the oldest body, if there is one.
  func decide(_ verdict: Verdict) {
    state.update { state in
      guard let next = state.active.keys.filter({ state.verdicts[$0] == nil }).min() else { return }
      state.verdicts[next] = verdict
    }
  }

  /// Lets every body finish, including later ones.
  func finishAll() { state.update { $0.finishesAll = true } }

  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    let start = Int(request.range?.start ?? 0)
    let validator = Validator(entityTag: EntityTag("v1"))
    let rest = Array(bytes[start...])
    let host = request.url.host() ?? ""
    return SourceReply(
      coverage: request.range == nil
        ? .whole : .range(Int64(start)..<Int64(bytes.count), total: .known(Int64(bytes.count))),
      length: .known(Int64(rest.count)), validator: validator,
      body: Body { sink in try await self.push(rest, of: request.id, from: host, into: sink) })
  }

  private func push(_ rest: [UInt8], of id: DownloadID, from host: String, into sink: ChunkSink) async throws {
    try Task.checkCancellation()
    let number = state.update { state -> UInt64 in
      state.last += 1
      let (others, sameHost) = (
        state.active.count, state.active.values.count { state.hosts[$0] == host }
      )
      // A stopped run may get as far as this, but not further.
      if !Task.isCancelled {
        if others >= state.limit { state.violations.append("\(id) began beside \(others) others") }
        if sameHost >= state.perHost { state.violations.append("\(id) began beside \(sameHost) others of its host") }
        if state.active.values.contains(id) { state.violations.append("\(id) ran twice at once") }
        if state.forbidden.contains(id) { state.violations.append("\(id) began although it was paused") }
      }
      state.active[state.last] = id
      state.hosts[id] = host
      return state.last
    }
    defer {
      state.update { state in
        state.active[number] = nil
        state.verdicts[number] = nil
      }
    }
    let half = rest.prefix(rest.count / 2)
    try sink(half.span.bytes)
    await state.wait { $0.finishesAll || $0.verdicts[number] != nil }
    try Task.checkCancellation()
    if case .fail(let error) = state.value.verdicts[number] { throw error }
    let other = rest.dropFirst(rest.count / 2)
    try sink(other.span.bytes)
  }
}
