import DownpipeChecksum
import DownpipeCore
import DownpipeScheduling
import DownpipeServer
import DownpipeTesting
import Foundation
import Synchronization

@testable import DownpipeRPC

/// A downloader with fakes for its stages, and the methods of aria2 for it.
struct RPCFixture: Sendable {
  static let directory = "/fake-storage"
  static let bytes = DownloadFixtures.pattern(size: 1000)

  let source: FakeSource
  let time: VirtualTime
  let downloader: Downloader
  let aria2: Aria2
  let shutDowns: CallCounter

  init(
    source: FakeSource = FakeSource(everyURL: FakeSource.Script(RPCFixture.bytes)), hasTimeStep: Bool = false,
    configuring configure: (inout RPCServer.Configuration) -> Void = { _ in }
  ) async throws {
    let time = VirtualTime()
    let storage = FakeStorage()
    let ledger = MemoryLedger()
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await Downloader(
      settings: RPCSettings(), options: DownloaderOptions(time: time, random: { 0.5 })
    ) { settings in
      source
      retry
      QueueOrder()
      Limits(concurrent: settings.concurrentDownloads ?? 2)
      storage
      ledger
      VerifyChecksum()
      if hasTimeStep { FakePostProcessor<File, File>(name: RequestOptions.timeStep) { file, _ in file } }
    }
    var configuration = RPCServer.Configuration(directory: Self.directory, secret: nil)
    configure(&configuration)
    let shutDowns = CallCounter()
    self.source = source
    self.time = time
    self.downloader = downloader
    self.shutDowns = shutDowns
    aria2 = Aria2(
      downloader: downloader, settings: try downloader.settings(RPCSettings.self), configuration: configuration,
      gids: GIDIndex(downloader), lists: ListCache(downloader, time: time), sessionID: "a session",
      shutDown: { shutDowns.add() })
  }

  /// A source whose bodies wait until they are released.
  static func holdingSource() -> FakeSource {
    FakeSource(everyURL: FakeSource.Script(bytes).holding(after: 400))
  }

  func handler(secret: RPCSecret?, rules: AccessRules = AccessRules()) -> RPCHandler {
    RPCHandler(
      rules: rules, secret: secret, aria2: aria2, notifier: Notifier(aria2.gids, aria2.lists),
      events: LiveEvents(downloader: downloader, time: time), metrics: RPCMetrics(downloader), time: time)
  }

  // MARK: Calls

  func call(_ method: String, _ parameters: JSONValue...) async -> Result<JSONValue, RPCFailure> {
    await aria2.perform(method, parameters) { _ in }
  }

  func value(_ method: String, _ parameters: JSONValue...) async throws -> JSONValue {
    let result = await aria2.perform(method, parameters) { _ in }
    return try result.get()
  }

  /// The message of the failure of a call; `nil` if it succeeds.
  func failure(_ method: String, _ parameters: JSONValue...) async -> String? {
    switch await aria2.perform(method, parameters, { _ in }) {
    case .success: nil
    case .failure(let failure): failure.message
    }
  }

  /// Adds a paused download.
  func add(_ gid: String, _ options: [String: JSONValue] = [:]) async throws {
    var options = options
    options["gid"] = .string(gid)
    options["pause"] = "true"
    _ = try await value("aria2.addUri", [.string("https://example.org/\(gid)")], .object(options))
  }

  func status(_ gid: String) async throws -> JSONValue { try await value("aria2.tellStatus", .string(gid)) }

  /// The state of a download, as aria2 names it.
  func state(_ gid: String) async throws -> String? { try await status(gid)["status"]?.text }

  func request(_ gid: String) async throws -> DownloadRequest? {
    try await downloader.status(of: DownloadID(gid))?.request
  }

  /// The ids of the queue.
  func queue() async throws -> [String] { try await downloader.statuses(QueueMove.waiting()).map(\.id.rawValue) }
}

final class CallCounter: Sendable {
  private let calls = Mutex(0)

  var count: Int { calls.withLock { $0 } }

  func add() { calls.withLock { $0 += 1 } }
}

extension JSONValue {
  /// The members `gid` of a list of statuses.
  var gids: [String] { (list ?? []).compactMap { $0["gid"]?.text } }

  /// The names of the members of an object.
  var keys: Set<String> { if case .object(let members) = self { Set(members.keys) } else { [] } }
}

extension ServerReply {
  /// The only value of a field; `nil` if there is none, or more than one.
  func field(_ name: String) -> String? {
    let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.count == 1 ? values[0] : nil
  }

  /// The body as text; `nil` for a stream.
  var text: String? { if case .bytes(let bytes) = body { String(decoding: bytes, as: UTF8.self) } else { nil } }
}
