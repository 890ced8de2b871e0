import DownpipeCore
import Foundation

/// Options of a download, and those for all.
extension Aria2 {
  func options(_ parameters: Parameters) async throws -> JSONValue {
    let status = try await gids.status(of: try parameters.string(0))
    var values = await defaults(where: \.isOfRequest)
    values.merge(RequestOptions.applied(RequestOptions.given(status.request))) { $1 }
    let folder = status.request.metadata[RequestOptions.folderKey] ?? status.request.destination.directory ?? ""
    values["dir"] = requestOptions.path(of: folder)
    let keepsTime =
      await stepNames().contains(RequestOptions.timeStep) && status.request.steps.contains(RequestOptions.timeStep)
    values[RequestOptions.timeOption] = String(keepsTime)
    return .object(values.mapValues { .string($0) })
  }

  func globalOptions() async -> JSONValue { .object(await defaults { _ in true }.mapValues { .string($0) }) }

  /// The values that hold where nothing else is given: those of this server, then what clients have changed.
  private func defaults(where isWanted: (Aria2Option) -> Bool) async -> [String: String] {
    var values = await started()
    for (name, value) in optionsForAll { values[name] = value }
    values["dir"] = requestOptions.path(of: optionsForAll["dir"] ?? "")
    return values.filter { name, _ in Aria2Option.all[name].map(isWanted) ?? false }
  }

  /// What clients have changed for all downloads.
  var optionsForAll: [String: String] { RequestOptions.applied(settings.value.options) }

  /// The names of the steps of the pipeline.
  func stepNames() async -> Set<String> { Set(await downloader.pipeline.steps.map(\.name)) }

  /// The values of the options that stages read, where a download has none of its own.
  var standardsOfStages: [String: String] {
    let changed = settings.value.options
    var values: [String: String] = [:]
    for name in OptionKey.all {
      values[name] = changed[name] ?? configuration.options[name] ?? Aria2Option.all[name]?.standard
    }
    return values
  }

  /// The values without those that clients have changed: the standard of aria2, then those of this server.
  private func started() async -> [String: String] {
    let hasTimeStep = await stepNames().contains(RequestOptions.timeStep)
    return Aria2Option.all.compactMapValues(\.standard)
      .merging(["dir": "", RequestOptions.timeOption: String(hasTimeStep)]) { $1 }
      .merging(configuration.options) { $1 }
  }

  /// The values of a client that have an effect.
  ///
  /// - Throws: ``RPCFailure`` for a value that the option does not take, and for one that cannot have its effect here.
  func values(of object: [String: JSONValue], where isWanted: (Aria2Option) -> Bool) async throws -> [String: String] {
    let values = try RequestOptions.values(of: object, inEffect: await started(), where: isWanted)
    let time = RequestOptions.timeOption
    if values[time] == "true", await !stepNames().contains(RequestOptions.timeStep) {
      throw RequestOptions.refusal(time, inEffect: "false")
    }
    return values
  }

  /// Options that cannot change once a download exists; aria2 leaves them out, too.
  private static let fixed: Set<String> = [
    "gid", "pause", "dry-run", "metalink-base-uri", "parameterized-uri",
  ]

  func changeOption(_ parameters: Parameters) async throws -> JSONValue {
    let text = try parameters.string(0)
    let changes = try await values(of: try parameters.object(1)) {
      $0.isOfRequest && !Self.fixed.contains($0.name)
    }
    let status = try await gids.status(of: text)
    guard !status.state.phase.isFinal else {
      throw RPCFailure("Cannot change option for GID#\(gids.gid(of: status.id).text)")
    }
    let all = optionsForAll.filter { Aria2Option.all[$0.key]?.isOfRequest == true }
    let standard = standardsOfStages
    let steps = await stepNames()
    _ = try await downloader.update(status.id) { [requestOptions, configuration] request in
      let given = RequestOptions.given(request).merging(changes) { $1 }
      try requestOptions.apply(changes, among: all.merging(given) { $1 }, to: &request)
      let kept = changes.filter { !["dir", RequestOptions.timeOption].contains($0.key) }
      RequestOptions.give(kept, to: &request, over: standard)
      try configuration.prepareChange(&request)
      RequestOptions.selectTime(changes[RequestOptions.timeOption], in: &request, of: steps)
    }
    return "OK"
  }

  /// Those of one download only are left out, as by aria2.
  private static let fixedForAll: Set<String> = ["gid", "pause", "out", "checksum", "select-file"]

  func changeGlobalOption(_ parameters: Parameters) async throws -> JSONValue {
    var changes = try await values(of: try parameters.object(0)) { !Self.fixedForAll.contains($0.name) }
    // What cannot be used fails here, not at the next download.
    var probe = DownloadRequest(URL(filePath: "/"))
    try requestOptions.apply(changes, to: &probe)
    // Relative to the folder of all downloads, which may get another path.
    if let dir = changes["dir"] { changes["dir"] = try requestOptions.folder(of: dir) }
    // A value with which the server was started is not kept: clients give back all options that they were told, and it may be
    // started with another one.
    let standard = await started()
    _ = try await settings.update { [changes] in
      for (name, value) in changes { $0.options[name] = value == standard[name] ? nil : value }
    }
    return "OK"
  }
}
