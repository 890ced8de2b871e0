import Downpipe
import DownpipeTesting
import Foundation
import Synchronization

/// A file of the kill test, and how the server serves it.
struct KillTestFile: Sendable {
  /// The quality of the server.
  enum Manner: Sendable, CaseIterable {
    /// With ranges and a strong entity tag.
    case good
    /// As `good`, but every other reply is cut, by a close or by a reset.
    case cut
    /// As `good`, but every other reply is 503.
    case unavailable
    /// With a strong entity tag, but without ranges.
    case withoutRanges
    /// With ranges and a weak entity tag.
    case weakTag
    /// With ranges, and without validators.
    case withoutTag

    /// Whether a client can resume without fetching bytes again.
    var isResumable: Bool { [.good, .cut, .unavailable].contains(self) }
  }

  /// The path on the server.
  let path: String
  let bytes: [UInt8]
  /// In bytes a second, for each connection.
  var bytesPerSecond = 2_560 << 10
  /// The number of connections that the tool is told to use.
  var connections = 1
  var manner = Manner.good
  /// The name of the finished file.
  let finalName: String
  /// The bytes of the finished file, where they differ from those of the server.
  var finalBytes: [UInt8]?
  /// The files of the finished folder by their paths in it, where it is a folder.
  var finalTree: [String: [UInt8]]?

  var size: Int64 { Int64(bytes.count) }
}

/// Serves files slowly, and keeps account of what it has served, so that it notices bytes that are fetched twice.
final class KillTestServer: Sendable {
  /// How many bytes a client may fetch again after a kill: those of a checkpoint, 4 MiB or what comes in a second, and
  /// those before it that are compared.
  ///
  /// Sent bytes are not received bytes. Bytes count as sent when a piece of a twentieth of a second starts, and may be
  /// lost in the send buffer of the server (128 KiB, twice what is asked for), in the receive buffer of the client (128
  /// KiB at first; it grows only for clients that read faster than this server sends) and in the buffers of the client
  /// itself (256 KiB at most).
  ///
  /// With several connections, the checkpoint is that of all of them, and the rest is for each.
  fileprivate static func bound(_ file: KillTestFile) -> Int64 {
    let (piece, count) = (Int64(file.bytesPerSecond / 20), Int64(file.connections))
    let checkpoint = max(Checkpoints.bytes, Int64(file.bytesPerSecond) * count)
    return checkpoint + (Checkpoints.compared + piece + 512 << 10) * count
  }

  private static let sendBuffer = 64 << 10

  fileprivate struct State {
    /// The bytes of each file that were ever sent, by path.
    var sent: [String: ByteRangeSet] = [:]
    /// The same at the start of this run, and how many of them this run has sent again.
    var sentBefore: [String: ByteRangeSet] = [:]
    var sentAgain: [String: Int64] = [:]
    /// The number of runs before this one.
    var earlierRuns = -1
    /// The files that the tool has reported as finished.
    var finished: Set<String> = []
    var problems: [String] = []
    var worst: Int64 = 0
    var process: KillTestProcess?
    var runRequests = 0
    var runBytes: Int64 = 0
    var runFiles = 0
    /// The latest requests, for the report.
    var log: [String] = []
  }

  private let server: ScriptedHTTPServer
  private let account: Account

  /// What the thread of the server and the test share.
  fileprivate final class Account: Sendable {
    let files: [String: KillTestFile]
    /// Small files that steps fetch, by path.
    let companions: [String: [UInt8]]
    let seed: UInt64
    let state = Mutex(State())

    init(_ files: [KillTestFile], companions: [String: [UInt8]], seed: UInt64) {
      self.files = Dictionary(uniqueKeysWithValues: files.map { ($0.path, $0) })
      self.companions = companions
      self.seed = seed
    }
  }

  init(_ files: [KillTestFile], companions: [String: [UInt8]] = [:], seed: UInt64) async throws {
    let account = Account(files, companions: companions, seed: seed)
    self.account = account
    server = try await ScriptedHTTPServer.start(sendBuffer: Self.sendBuffer) { account.reply(to: $0) }
  }

  func url(_ file: KillTestFile) -> String { "\(server.url(file.path))" }

  func shutdown() async { await server.shutdown() }

  /// A run starts.
  func begin(_ process: KillTestProcess) {
    account.state.withLock { state in
      state.process = process
      state.sentBefore = state.sent
      state.sentAgain = [:]
      state.earlierRuns += 1
      state.runRequests = 0
      state.runBytes = 0
      state.runFiles = 0
      state.log.append("— next run —")
    }
  }

  /// The tool has reported files as finished: it must not ask for them again.
  func finished(_ paths: some Sequence<String>) { account.state.withLock { $0.finished.formUnion(paths) } }

  /// Returns the files that are not finished, or of which some bytes were never sent.
  var left: [(file: KillTestFile, bytes: Int64)] {
    account.state.withLock { state in
      // Sorted: the same seed must choose the same files.
      account.files.values.filter { !state.finished.contains($0.path) }.sorted { $0.path < $1.path }
        .map { ($0, $0.size - (state.sent[$0.path]?.byteCount ?? 0)) }
    }
  }

  /// The number of requests of this run.
  var requests: Int { account.state.withLock { $0.runRequests } }
  /// The errors so far.
  var problems: [String] { account.state.withLock { $0.problems } }
  /// The largest number of bytes that were fetched twice.
  var worst: Int64 { account.state.withLock { $0.worst } }
  /// The latest requests.
  var log: [String] { account.state.withLock { $0.log } }
}

extension KillTestServer.Account {
  func reply(to request: ScriptedRequest) -> ScriptedReply {
    guard let file = files[request.path] else {
      return companions[request.path].map { .file(.bytes($0), for: request) } ?? .status(404)
    }
    note(request, file)
    var chance = generator(request)
    if file.manner == .unavailable, request.number % 2 == 1 { return .status(503) }
    let tag: String? =
      switch file.manner {
      case .weakTag: "W/\"1\""
      case .withoutTag: nil
      default: "\"1\""
      }
    var reply = ScriptedReply.file(
      .bytes(file.bytes), etag: tag, supportsRanges: file.manner != .withoutRanges, for: request)
    if file.manner == .cut, request.number % 2 == 1 {
      reply = reply.truncated(
        after: .random(in: 0...file.size / 2, using: &chance), reset: .random(using: &chance))
    }
    return counted(reply, file)
  }

  private func generator(_ request: ScriptedRequest) -> SeededGenerator {
    var generator = SeededGenerator(seed: seed)
    var mixed = generator.next()
    for byte in request.path.utf8 { mixed = (mixed ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return SeededGenerator(seed: mixed ^ UInt64(request.number))
  }

  private func note(_ request: ScriptedRequest, _ file: KillTestFile) {
    let start = request.range?.start ?? 0
    state.withLock { state in
      state.runRequests += 1
      let sent = state.sent[file.path]?.ranges.last?.upperBound ?? 0
      let line = "\(file.path) from \(start), of which \(sent) bytes were sent before"
      if state.log.count >= 200 { state.log.removeFirst() }
      state.log.append(line)
      if state.finished.contains(file.path) { state.problems.append("asked for a file that was finished: \(line)") }
      guard file.manner.isResumable, file.connections == 1 else { return }
      state.worst = max(state.worst, sent - start)
      if sent - start > KillTestServer.bound(file) {
        state.problems.append("more than a checkpoint is fetched again: \(line)")
      }
      // Bytes that were never sent cannot have been received.
      if start > sent { state.problems.append("bytes were left out: \(line)") }
    }
  }

  /// Returns the same reply, slowed down, with an account of each piece.
  private func counted(_ reply: ScriptedReply, _ file: KillTestFile) -> ScriptedReply {
    let piece = Int64(max(1, file.bytesPerSecond / 20))
    var steps: [ScriptedReply.Step] = [.throttle(bytesPerSecond: file.bytesPerSecond)]
    for step in reply.steps {
      guard case .content(let content, let range) = step else {
        steps.append(step)
        continue
      }
      for start in stride(from: range.lowerBound, to: range.upperBound, by: Int64.Stride(piece)) {
        let end = min(start + piece, range.upperBound)
        steps.append(.call { self.sends(start..<end, of: file) })
        steps.append(.content(content, start..<end))
      }
    }
    return ScriptedReply(steps)
  }

  private func sends(_ range: Range<Int64>, of file: KillTestFile) {
    let (process, bytes, files) = state.withLock { state in
      state.sent[file.path, default: .init()].insert(contentsOf: range)
      if file.connections > 1 { noteAgain(range, of: file, &state) }
      state.runBytes += range.upperBound - range.lowerBound
      if range.upperBound == file.size { state.runFiles += 1 }
      return (state.process, state.runBytes, state.runFiles)
    }
    process?.served(bytes, files: files)
  }

  /// With several connections, a request says little about what is fetched again: the bytes are counted.
  private func noteAgain(_ range: Range<Int64>, of file: KillTestFile, _ state: inout KillTestServer.State) {
    let again = state.sentBefore[file.path]?.intersection(ByteRangeSet(range)).byteCount ?? 0
    guard again > 0 else { return }
    let before = state.sentAgain[file.path, default: 0]
    // A run may fetch other bytes first than those that the one before has lost.
    let bound = KillTestServer.bound(file) * Int64(max(1, state.earlierRuns))
    let now = before + again
    state.sentAgain[file.path] = now
    state.worst = max(state.worst, now)
    if before <= bound, now > bound {
      state.problems.append("more than \(bound) bytes of \(file.path) are fetched again in one run")
    }
  }
}
