import DownpipeCore
import Foundation
import Synchronization

/// The servers of a world and the network to them.
final class SimulatedNetwork: Sendable {
  /// A request that is being answered.
  struct Exchange: Sendable {
    let process: SimulatedProcess
    let id: DownloadID
    let url: URL
    var host: String { url.host() ?? "" }
  }

  private struct File: Sendable {
    let file: SimulatedFile
    /// All versions so far; the last one is served.
    var versions: [FileContent]
    let number: Int64
  }

  private struct State: Sendable {
    /// The files by host and path.
    var files: [String: File] = [:]
    var exchanges: [UInt64: Exchange] = [:]
    var last: UInt64 = 0
    /// Until when the network is away.
    var awayUntil = Duration.zero
  }

  let world: World
  private let servers: [String: SimulatedServer]
  private let state: Mutex<State>
  /// The host under which redirected requests are answered.
  private static let otherHost = "cache.example"
  private static let pageSize: Int64 = 2_000

  init(_ world: World) {
    self.world = world
    servers = Dictionary(world.configuration.servers.map { ($0.host, $0) }) { $1 }
    var state = State()
    for server in world.configuration.servers {
      for file in server.files {
        let number = Int64(state.files.count)
        state.files[server.host + file.path] = File(
          file: file, versions: [Self.content(number, version: 1, size: file.size)], number: number)
      }
    }
    self.state = Mutex(state)
  }

  /// The bytes of a version. No two versions have the same byte at the same place, but by chance.
  private static func content(_ number: Int64, version: Int, size: Int64) -> FileContent {
    FileContent(
      position: (number * 104_729 + Int64(version) * 15_485_863) % BytePattern.count, size: size, version: version)
  }

  // MARK: What the servers have

  /// The versions that a URL has had so far, and those of the file that it is a copy of.
  func versions(of url: URL) -> [FileContent] {
    let key = (url.host() ?? "") + url.path()
    return state.withLock { state in
      guard let file = state.files[key] else { return [] }
      return file.versions + (file.file.copyOf.flatMap { state.files[$0]?.versions } ?? [])
    }
  }

  /// The present version of a URL.
  func content(of url: URL) -> FileContent? {
    let key = (url.host() ?? "") + url.path()
    return state.withLock { state in
      guard let file = state.files[key] else { return nil }
      return (file.file.copyOf.flatMap { state.files[$0] } ?? file).versions.last
    }
  }

  /// Replaces a file by another version.
  func swap(_ url: URL) {
    let key = (url.host() ?? "") + url.path()
    state.withLock { state in
      let name = state.files[key]?.file.copyOf ?? key
      guard var file = state.files[name] else { return }
      let version = file.versions.count + 1
      // Often of the same size, which is harder to notice.
      let size = version % 3 == 0 ? file.file.size + Int64(version) * 97 : file.file.size
      file.versions.append(Self.content(file.number, version: version, size: size))
      state.files[name] = file
    }
    world.timeline.note(.world, text: "\(key) is replaced by another version")
  }

  // MARK: What is going on

  var exchanges: [Exchange] { state.withLock { $0.exchanges.sorted { $0.key < $1.key }.map(\.value) } }

  var isAway: Bool { state.withLock { $0.awayUntil } > world.clock.now && !world.areFaultsOver }

  // MARK: Requests

  func open(_ request: SourceRequest, from process: SimulatedProcess) async throws -> SourceReply {
    let host = request.url.host() ?? ""
    world.timeline.note(
      .request, process.number, request.id, numbers: request.range?.start ?? -1, request.range?.end ?? -1,
      text: "asks for \(request.url.absoluteString)\(request.range.map { " \($0.field)" } ?? "")"
        + (request.validator.map { " if it is \($0.entityTag?.field ?? "as of a date")" } ?? ""))
    switch process.lack {
    case .network: throw process.lacking(DownloadError(.network, "the proxy is dead", scope: .host))
    case .credentials: throw process.lacking(DownloadError(.permission, "there is no password", scope: .machine))
    case .disk, nil: break
    }
    guard let server = servers[host] else {
      throw DownloadError(.hostNotFound, "there is no server \(host)")
    }
    if world.happens(world.configuration.networkLosses, .network) {
      let length = world.duration(in: .seconds(1) ... .seconds(60), .network)
      state.withLock { $0.awayUntil = world.clock.now + length }
      world.coverage.count("network: away")
      world.timeline.note(.world, text: "the network is away for \(length)")
    }
    guard !isAway else { throw DownloadError(.offline, "there is no network") }
    let received = process.system.checks.received(of: request.id)
    try await process.time.sleep(for: world.duration(in: server.latency, .network))
    try process.checkAlive()
    do {
      let reply = try reply(to: request, of: server, from: process, beside: received)
      process.system.checks.replied(reply, to: request, process)
      world.timeline.note(
        .reply, process.number, request.id, numbers: reply.length.bytes ?? -1,
        text: "\(host) answers: \(reply.coverage)")
      return reply
    } catch {
      world.timeline.note(.reply, process.number, request.id, text: "\(host) fails: \(error)")
      throw error
    }
  }

  /// The fault of a request, if it has one.
  private func fault(
    of request: SourceRequest, _ server: SimulatedServer, from process: SimulatedProcess
  ) -> ServerFault? {
    for (fault, rate) in server.faults.sorted(by: { $0.key < $1.key }) where world.happens(rate, .network) {
      switch fault {
      case .wrongRange, .wrongTotal, .ignoredRange, .refusedRange, .rangeAsWhole: if request.range == nil { continue }
      case .expiredLink: if !process.system.checks.isKnown(request) { continue }
      case .lyingSize:
        // Of a file that was replaced since, the client cannot know the size.
        if !process.system.checks.isKnown(request, of: presentValidator(of: request, server)) { continue }
      // The end of such a body is the end of the file.
      case .truncate: if file(request, server)?.announcesLength == false { continue }
      // Others have no way to notice, also if the file is asked for in part: the reply may be a whole one.
      case _ where ServerFault.undetectable.contains(fault):
        if request.metadata[SimulatedRequest.digestKey] == nil { continue }
      case .wrongCopy: if file(request, server)?.copyOf == nil { continue }
      default: break
      }
      process.system.checks.fault(fault, of: request, from: process)
      if ServerFault.undetectable.contains(fault) { process.system.checks.deceived(request.id) }
      world.coverage.count("fault: \(fault.rawValue)")
      world.timeline.note(.world, nil, request.id, text: "fault: \(fault.rawValue)")
      return fault
    }
    return nil
  }

  private func file(_ request: SourceRequest, _ server: SimulatedServer) -> SimulatedFile? {
    state.withLock { $0.files[server.host + request.url.path()]?.file }
  }

  private func reply(
    to request: SourceRequest, of server: SimulatedServer, from process: SimulatedProcess,
    beside received: FetchedBytes.Received
  ) throws -> SourceReply {
    let key = server.host + request.url.path()
    let fault = fault(of: request, server, from: process)
    if let limit = server.maximumConnections, exchanges.count(where: { $0.host == server.host }) >= limit {
      return refusal(.status(503), after: .seconds(1))
    }
    switch fault {
    case .refuse: throw DownloadError(.network, "the connection was refused")
    case .reset: throw DownloadError(.network, "the connection was reset")
    case .tooManyRequests:
      return refusal(.status(429), after: world.duration(in: .seconds(1) ... .seconds(90), .network))
    case .serverError:
      return refusal(.status(world.random(.network) { [500, 502, 503, 504].randomElement(using: &$0) ?? 500 }))
    case .notFound: return refusal(.status(404))
    case .refusedRange:
      return refusal(
        .rangeNotSatisfiable(total: world.random(.network) { Bool.random(using: &$0) } ? .unknown : .known(1)))
    case .swappedFile:
      swap(request.url)
    case .logInPage:
      let page = FileContent(position: 77, size: Self.pageSize)
      var reply = message(page, to: request, of: server, from: process, beside: received)
      reply.mediaType = "text/html"
      return reply
    case .expiredLink:
      let isEmpty = world.random(.network) { Int.random(in: 0..<4, using: &$0) } == 0
      let text = FileContent(position: 77, size: isEmpty ? 0 : 7)
      var reply = message(text, to: request, of: server, from: process, beside: received)
      reply.mediaType = isEmpty ? nil : world.random(.network) { Self.messageTypes.randomElement(using: &$0) }
      let present = presentValidator(of: request, server)
      reply.validator = world.random(.network) { generator in
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: nil
        case 1: Validator(entityTag: EntityTag("message"))
        default: present
        }
      }
      return reply
    case .lyingSize:
      guard let content = content(of: request.url), let file = file(request, server) else { break }
      let lie = FileContent(position: content.position, size: min(7, content.size))
      var reply = message(lie, to: request, of: server, from: process, beside: received)
      (reply.mediaType, reply.validator) = (file.mediaType, validator(of: content, file))
      return reply
    default: break
    }
    guard let known = state.withLock({ $0.files[key] }), var content = content(of: request.url) else {
      return refusal(.status(404))
    }
    // The copy's own bytes count as a version of the file, because a client that asks no other server cannot notice. But they
    // must not be mixed with the original's.
    if fault == .wrongCopy, let own = known.versions.first { content = own }
    return reply(to: request, content, known.file, fault, of: server, from: process, beside: received)
  }

  private static let messageTypes = ["text/plain; charset=utf-8", "application/json", "text/html", "application/xml"]

  /// A whole reply with other bytes than those of the file.
  private func message(
    _ content: FileContent, to request: SourceRequest, of server: SimulatedServer, from process: SimulatedProcess,
    beside received: FetchedBytes.Received
  ) -> SourceReply {
    SourceReply(
      coverage: .whole, length: .known(content.size),
      body: body(of: content, 0..<content.size, nil, for: request, server, process, beside: received))
  }

  private func refusal(_ refusal: Coverage.Refusal, after delay: Duration? = nil) -> SourceReply {
    var reply = SourceReply(coverage: .none(refusal), body: .empty)
    reply.retryAfter = delay.map { .seconds($0.components.seconds) }
    return reply
  }

  private func reply(
    to request: SourceRequest, _ content: FileContent, _ file: SimulatedFile, _ fault: ServerFault?,
    of server: SimulatedServer, from process: SimulatedProcess, beside received: FetchedBytes.Received
  ) -> SourceReply {
    let validator = validator(of: content, file)
    if let condition = request.condition, let validator, condition.compare(to: validator) == .sameStrong {
      return refusal(.notModified)
    }
    var coverage = Coverage.whole
    var range = 0..<content.size
    let isAgreed = request.validator.map { asked in
      asked.entityTag == nil && asked.lastModified == nil
        || validator.map { asked.compare(to: $0) == .sameStrong } ?? false
    }
    let total: ByteCount = file.announcesLength ? .known(content.size) : .unknown
    if let asked = request.range {
      let isServed = file.servesRanges && fault != .ignoredRange && isAgreed != false
      if isServed, asked.start >= content.size { return refusal(.rangeNotSatisfiable(total: total)) }
      if isServed {
        let end = min(asked.end ?? content.size, content.size)
        let shift: Int64 = fault == .wrongRange ? min(1_000, max(0, end - asked.start - 1)) : 0
        range = (asked.start + shift)..<end
        coverage = .range(range, total: fault == .wrongTotal ? .known(content.size + 1) : total)
      }
    }
    var served = content
    if fault == .otherBytes {
      served = FileContent(position: content.position + 500_009, size: content.size)
    }
    var reply = SourceReply(
      coverage: coverage, length: file.announcesLength || coverage != .whole ? .known(Int64(range.count)) : .unknown,
      validator: validator, body: body(of: served, range, fault, for: request, server, process, beside: received))
    reply.mediaType = file.mediaType
    if fault == .rangeAsWhole, coverage != .whole {
      reply.coverage = .whole
      if world.random(.network, { Bool.random(using: &$0) }) { reply.claimedRange = coverage }
    }
    if fault == .redirect {
      var parts = URLComponents()
      (parts.scheme, parts.host, parts.path) = ("https", Self.otherHost, request.url.path())
      reply.finalURL = parts.url
    }
    return reply
  }

  /// That of the version which the file of a request has now.
  private func presentValidator(of request: SourceRequest, _ server: SimulatedServer) -> Validator? {
    guard let content = content(of: request.url), let file = file(request, server) else { return nil }
    return validator(of: content, file)
  }

  private func validator(of content: FileContent, _ file: SimulatedFile) -> Validator? {
    let tag = "\(file.path)-\(content.version)"
    switch file.validation {
    case .strong: return Validator(entityTag: EntityTag(tag))
    case .weak: return Validator(entityTag: EntityTag(tag, isWeak: true))
    case .lying: return Validator(entityTag: EntityTag(file.path))
    case .date:
      // Each version is a day younger; the server's date makes it strong (RFC 9110 §8.8.2.2).
      return Validator(
        lastModified: Date(timeIntervalSince1970: 1_700_000_000 + Double(content.version) * 86_400),
        responseDate: Date(timeIntervalSince1970: 1_800_000_000))
    case .none: return nil
    }
  }

  // MARK: Bodies

  private func body(
    of content: FileContent, _ range: ByteRange, _ fault: ServerFault?, for request: SourceRequest,
    _ server: SimulatedServer, _ process: SimulatedProcess, beside received: FetchedBytes.Received
  ) -> Body {
    var end = range.upperBound
    if fault == .cut || fault == .truncate || fault == .stall, range.count > 1 {
      end = world.random(.network) { Int64.random(in: range.lowerBound..<range.upperBound, using: &$0) }
    }
    return Body { [end] sink in
      let number = self.begin(Exchange(process: process, id: request.id, url: request.url))
      let isCounted = SeveredSource.isCounting
      if !isCounted { process.transferBegan(request.id) }
      defer {
        self.state.withLock { _ = $0.exchanges.removeValue(forKey: number) }
        if !isCounted { process.transferEnded(request.id) }
      }
      try await process.system.checks.receiving(
        range.lowerBound..<end, of: content, for: request, process, beside: received, into: sink
      ) {
        try await self.send(content, range.lowerBound..<end, request, server, process, into: $0)
      }
      switch fault {
      case .stall:
        try await process.time.sleep(for: .seconds(600))
        throw DownloadError(.timedOut, "the server sent nothing for ten minutes")
      case .cut: throw DownloadError(.network, "the connection was cut")
      default: break
      }
    }
  }

  private func begin(_ exchange: Exchange) -> UInt64 {
    let all = exchanges
    if all.contains(where: { $0.id != exchange.id && $0.url == exchange.url }) {
      world.coverage.count("transfer: one URL twice")
    }
    let others = all.filter { $0.id == exchange.id && $0.process === exchange.process }
    if !others.isEmpty { world.coverage.count("transfer: several connections") }
    if others.contains(where: { $0.host != exchange.host }) { world.coverage.count("transfer: several servers") }
    return state.withLock { state in
      state.last += 1
      state.exchanges[state.last] = exchange
      return state.last
    }
  }

  /// The time between two chunks.
  private static let interval = Duration.milliseconds(250)
  private static let largestChunk: Int64 = 256 << 10

  private func send(
    _ content: FileContent, _ range: ByteRange, _ request: SourceRequest, _ server: SimulatedServer,
    _ process: SimulatedProcess, into sink: @escaping ChunkSink
  ) async throws {
    var position = range.lowerBound
    while position < range.upperBound {
      let left = range.upperBound - position
      var count = min(left, Self.largestChunk)
      if let rate = server.bandwidth {
        // As many bytes as flow in an interval, so that a fast and a slow transfer of the same time cost the same jobs.
        count = min(left, max(1, rate / 4), BytePattern.count)
        try await process.time.sleep(for: Self.interval * (Double(count) / Double(max(1, rate / 4))))
      } else {
        await world.scheduler.yield(on: process.executor)
        try Task.checkCancellation()
      }
      try process.checkAlive()
      guard !isAway else { throw DownloadError(.network, "the network went away") }
      try BytePattern.withSpan(from: content.position + position, count: Int(count), sink)
      position += count
      try await request.pace.keep(after: Int(count))
    }
  }
}

/// The source of a simulated process.
struct SimulatedSource: Source, SourceSession {
  let network: SimulatedNetwork
  let process: SimulatedProcess

  var name: String { "SimulatedSource" }

  func accepts(_ url: URL) -> Bool { url.scheme == "https" }

  func open(_ request: SourceRequest) async throws -> SourceReply { try await network.open(request, from: process) }
}
