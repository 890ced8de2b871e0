import DownpipeCore
import Foundation

/// The methods of aria2's protocol, for one downloader.
///
/// Names, parameters, codes and texts follow aria2 1.36 as far as its clients can depend on them; ``README`` of the plug-in
/// lists the differences.
struct Aria2: Sendable {
  let downloader: Downloader
  let settings: DownloaderSettings<RPCSettings>
  let configuration: RPCServer.Configuration
  let gids: GIDIndex
  let lists: ListCache
  let queueEnd = QueueEnd()
  /// Changes with each start of the server.
  let sessionID: String
  /// Ends the server, after the reply.
  let shutDown: @Sendable () -> Void

  /// Who calls: whether its token is right.
  typealias Authorization = (_ token: String?) throws(RPCFailure) -> Void

  typealias Method = @Sendable (Aria2, Parameters) async throws -> JSONValue

  /// Those of BitTorrent are left out, as by an aria2 that was built without it.
  static let methods: [String: Method] = [
    "aria2.addUri": { try await $0.addURI($1) },
    "aria2.addMetalink": { try await $0.addMetalink($1) },
    "aria2.remove": { try await $0.remove($1) },
    "aria2.forceRemove": { try await $0.remove($1) },
    "aria2.pause": { try await $0.pause($1) },
    "aria2.forcePause": { try await $0.pause($1) },
    "aria2.pauseAll": { server, _ in try await server.pauseAll() },
    "aria2.forcePauseAll": { server, _ in try await server.pauseAll() },
    "aria2.unpause": { try await $0.unpause($1) },
    "aria2.unpauseAll": { server, _ in try await server.unpauseAll() },
    "aria2.tellStatus": { try await $0.tellStatus($1) },
    "aria2.tellActive": { try await $0.tellActive($1) },
    "aria2.tellWaiting": { try await $0.tellWaiting($1) },
    "aria2.tellStopped": { try await $0.tellStopped($1) },
    "aria2.getUris": { server, parameters in try await server.status(parameters).uris },
    "aria2.getFiles": { server, parameters in try await server.status(parameters).files },
    "aria2.getServers": { try await $0.servers($1) },
    "aria2.changePosition": { try await $0.changePosition($1) },
    "aria2.changeUri": { try await $0.changeURI($1) },
    "aria2.getOption": { try await $0.options($1) },
    "aria2.changeOption": { try await $0.changeOption($1) },
    "aria2.getGlobalOption": { server, _ in await server.globalOptions() },
    "aria2.changeGlobalOption": { try await $0.changeGlobalOption($1) },
    "aria2.getGlobalStat": { server, _ in try await server.globalStat() },
    "aria2.purgeDownloadResult": { server, _ in try await server.purge() },
    "aria2.removeDownloadResult": { try await $0.removeResult($1) },
    "aria2.getVersion": { server, _ in server.version },
    "aria2.getSessionInfo": { server, _ in ["sessionId": .string(server.sessionID)] },
    "aria2.shutdown": { server, _ in try server.end() },
    "aria2.forceShutdown": { server, _ in try server.end() },
    // The ledger has everything already.
    "aria2.saveSession": { _, _ in "OK" },
  ]

  static let systemMethods = ["system.multicall", "system.listMethods", "system.listNotifications"]

  static let notifications = [
    "aria2.onDownloadStart", "aria2.onDownloadPause", "aria2.onDownloadStop", "aria2.onDownloadComplete",
    "aria2.onDownloadError",
  ]

  /// Performs a call.
  /// - Parameter authorize: Checks the token, which is the first parameter, without its prefix.
  func perform(
    _ method: String, _ parameters: [JSONValue], within budget: JSONRPC.Budget = JSONRPC.Budget(),
    _ authorize: Authorization
  ) async -> Result<JSONValue, RPCFailure> {
    do { return .success(try await result(method, parameters, budget, authorize)) } catch let failure as RPCFailure {
      return .failure(failure)
    } catch let error as DownloadError {
      return .failure(RPCFailure(error.message))
    } catch is CancellationError {
      return .failure(RPCFailure("The call was cancelled: the server ends."))
    } catch {
      return .failure(RPCFailure(DownloadError(error, as: .invalidRequest).message))
    }
  }

  private func result(
    _ method: String, _ parameters: [JSONValue], _ budget: JSONRPC.Budget, _ authorize: Authorization
  ) async throws -> JSONValue {
    let prefix = "token:"
    let token = parameters.first?.text.flatMap { $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : nil }
    let rest = token == nil ? parameters : Array(parameters.dropFirst())
    switch method {
    case "system.listMethods":
      return .array(
        (Self.methods.keys.sorted() + Self.nativeMethods.keys.sorted() + Self.systemMethods).map { .string($0) })
    case "system.listNotifications": return .array(Self.notifications.map { .string($0) })
    case "system.multicall": return try await multicall(Parameters(rest), budget, authorize)
    default:
      try authorize(token)
      guard let body = Self.methods[method] ?? Self.nativeMethods[method] else {
        throw RPCFailure("No such method: \(method.prefix(100))")
      }
      guard !Self.isReading(method) else {
        let value = try await body(self, Parameters(rest))
        guard budget.tell(method.hasPrefix("aria2.tell") ? value.list?.count ?? 1 : 0) else {
          throw RPCFailure("One message is told at most \(JSONRPC.mostDownloads) downloads.")
        }
        return value
      }
      // A client sees what its own command has done, also while another client reads.
      lists.invalidate()
      defer { lists.invalidate() }
      return try await body(self, Parameters(rest))
    }
  }

  private static func isReading(_ method: String) -> Bool {
    method.hasPrefix("aria2.tell") || method.hasPrefix("aria2.get") || method.hasPrefix("downpipe.get")
  }

  /// Each call has a token of its own.
  private func multicall(
    _ parameters: Parameters, _ budget: JSONRPC.Budget, _ authorize: Authorization
  ) async throws -> JSONValue {
    let calls = try parameters.list(0)
    // Of all multicalls of a batch together.
    guard budget.take(calls.count) else {
      throw RPCFailure("system.multicall takes at most \(JSONRPC.mostCalls) calls.")
    }
    var results: [JSONValue] = []
    for call in calls {
      guard case .object = call else {
        results.append(RPCFailure("system.multicall expected struct.").json)
        continue
      }
      guard let name = call["methodName"]?.text else {
        results.append(RPCFailure("Missing methodName.").json)
        continue
      }
      guard name != "system.multicall" else {
        results.append(RPCFailure("Recursive system.multicall forbidden.").json)
        continue
      }
      switch await perform(name, call["params"]?.list ?? [], within: budget, authorize) {
      case .success(let value): results.append([value])
      case .failure(let failure): results.append(failure.json)
      }
    }
    return .array(results)
  }

  private var version: JSONValue {
    [
      // Of the protocol: clients compare it.
      "version": "1.36.0",
      "enabledFeatures": ["Async DNS", "GZip", "HTTPS", "Message Digest", "Metalink"],
      "downpipe": .string(configuration.version),
    ]
  }

  private func end() throws(RPCFailure) -> JSONValue {
    guard configuration.allowsShutdown else { throw RPCFailure("This server is not ended by its clients.") }
    shutDown()
    return "OK"
  }
}
