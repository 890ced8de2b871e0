import DownpipeChecksum
import DownpipeCore
import Foundation

/// The options of downloads, as clients give them, and what they make of a request.
struct RequestOptions: Sendable {
  /// The absolute path of the folder of all downloads.
  let directory: String

  /// The key of the options that a client has given, among the metadata of a request.
  static let metadataKey = "rpc.options"

  /// Returns the values that have an effect, as they are told again. Options that aria2 does not know are left out, as by
  /// aria2.
  ///
  /// - Parameters:
  ///   - inEffect: The values that hold where clients change nothing; the standard of aria2 where there is none.
  ///   - isWanted: Whether an option can be given here.
  /// - Throws: ``RPCFailure`` for a value that the option does not take, and for one that cannot have its effect here.
  static func values(
    of object: [String: JSONValue], inEffect: [String: String] = [:],
    where isWanted: (Aria2Option) -> Bool = \.isOfRequest
  ) throws(RPCFailure) -> [String: String] {
    var values: [String: String] = [:]
    for (name, value) in object {
      guard let option = Aria2Option.all[name], isWanted(option) else { continue }
      // A value that is not text, such as a number, is not read.
      guard value.text != nil || (option.kind == .lines && value.list != nil) else { continue }
      guard let text = option.canonical(value) else {
        throw RPCFailure("We encountered a problem while processing the option '--\(name)'.")
      }
      switch option.use {
      case .applied: values[name] = text
      case .fixed:
        let present = inEffect[name] ?? option.standard
        guard option.isAccepted(text, inEffect: present) else { throw refusal(name, inEffect: present) }
      case .inner, .start: break
      }
    }
    return values
  }

  /// The refusal of a value that cannot have its effect.
  static func refusal(_ name: String, inEffect: String?) -> RPCFailure {
    let reason =
      inEffect.map { "It is “\($0.prefix(200).escaped)” here and cannot be changed" } ?? "It cannot be set here"
    return RPCFailure("We encountered a problem while processing the option '--\(name)'. \(reason).")
  }

  /// The values that have an effect: those of an earlier version may have others, which it kept without one.
  static func applied(_ values: [String: String]) -> [String: String] {
    values.filter { Aria2Option.all[$0.key]?.use == .applied }
  }

  /// The option that selects ``timeStep``, and its name among the steps of a pipeline.
  static let timeOption = "remote-time"
  static let timeStep = "SetModificationDate"

  /// Selects, or leaves out, the step that gives a file the time of its server.
  ///
  /// - Parameters:
  ///   - value: The value of the option; `nil` for the selection as it is.
  ///   - steps: The names of all steps of the pipeline.
  static func selectTime(_ value: String?, in request: inout DownloadRequest, of steps: Set<String>) {
    guard let value, steps.contains(timeStep), (value == "true") != request.steps.contains(timeStep) else { return }
    let others = (request.steps.names ?? steps).subtracting([timeStep])
    request.steps = .only(value == "true" ? others.union([timeStep]) : others)
  }

  /// The options that were given for a download.
  static func given(_ request: DownloadRequest) -> [String: String] {
    guard let text = request.metadata[metadataKey],
      case .object(let members)? = try? JSONValue(parsing: Array(text.utf8))
    else { return [:] }
    return members.compactMapValues(\.text)
  }

  /// Adds options to those that were given for a download, and lets the stages see those that they read.
  ///
  /// - Parameter standard: The values that hold where none is given. A value for the stages that equals them is not kept, and the
  ///   standard applies from then on: clients give back all options that they were told.
  static func give(_ values: [String: String], to request: inout DownloadRequest, over standard: [String: String]) {
    var given = given(request).merging(values) { $1 }
    for option in OptionKey.all {
      guard let value = values[option] else { continue }
      let own = value == standard[option] ? nil : value
      given[option] = own
      request.metadata[OptionKey.of(option)] = own
    }
    setGiven(given, of: &request)
  }

  private static func setGiven(_ values: [String: String], of request: inout DownloadRequest) {
    request.metadata[metadataKey] =
      values.isEmpty
      ? nil : String(decoding: JSONValue.object(values.mapValues { .string($0) }).bytes, as: UTF8.self)
  }

  /// The key of the folder that a download was added for, relative to that of all downloads, among the metadata of a request.
  static let folderKey = "rpc.folder"
  /// The options that say where a file goes.
  static let placing: Set<String> = ["dir", "out"]
  /// The options that become fields of requests.
  static let fields: Set<String> = ["header", "referer", "user-agent", "http-user", "http-passwd"]

  /// Sets what the options say of a new request.
  ///
  /// - Parameter values: The options of the download, over those for all downloads.
  /// - Throws: ``RPCFailure`` for a folder or a name outside of the folder of all downloads, for fields that would break a
  ///   request, and for a digest that cannot be read.
  func apply(_ values: [String: String], to request: inout DownloadRequest) throws(RPCFailure) {
    try place(&request, in: try folder(of: values["dir"] ?? ""), out: values["out"])
    request.headers = try fields(values)
    if let checksum = values["checksum"] { request.expectedDigests = [try digest(checksum)] }
  }

  /// Sets what changed options say of a request. What they do not name stays, also where another program has set it.
  ///
  /// - Parameters:
  ///   - changes: The options that a client changes.
  ///   - values: All options of the download, over those for all downloads.
  func apply(
    _ changes: [String: String], among values: [String: String], to request: inout DownloadRequest
  ) throws(RPCFailure) {
    if changes.keys.contains(where: Self.placing.contains) {
      let folder = try changes["dir"].map { path throws(RPCFailure) in try self.folder(of: path) }
      let base = folder ?? request.metadata[Self.folderKey] ?? request.destination.directory ?? ""
      let name = request.destination.name
      try place(&request, in: base, out: values["out"])
      if request.destination.name == nil { request.destination.name = name }
    }
    if changes.keys.contains(where: Self.fields.contains) { request.headers = try fields(values) }
    if let checksum = changes["checksum"] { request.expectedDigests = [try digest(checksum)] }
  }

  private func digest(_ text: String) throws(RPCFailure) -> FileDigest {
    do { return try FileDigest(parsing: text) } catch {
      throw RPCFailure("The option 'checksum' cannot be used: \(error.message)")
    }
  }

  /// Returns a folder relative to that of all downloads; empty for that itself.
  func folder(of dir: String) throws(RPCFailure) -> String { try components(of: dir, "dir").joined(separator: "/") }

  /// The absolute path of a folder as it is kept.
  func path(of folder: String) -> String { folder.isEmpty ? directory : directory + "/" + folder }

  private func place(_ request: inout DownloadRequest, in folder: String, out: String?) throws(RPCFailure) {
    var parts = try Self.checked(folder, "dir")
    if let out, !out.isEmpty {
      guard !out.hasPrefix("/") else { throw Self.outside("out", out) }
      let names = try Self.checked(out, "out")
      guard let name = names.last else { throw Self.outside("out", out) }
      parts += names.dropLast()
      request.destination.name = name
      request.destination.nameUse = .order
    }
    request.destination.directory = parts.isEmpty ? nil : parts.joined(separator: "/")
    request.metadata[Self.folderKey] = folder
  }

  private func components(of path: String, _ option: String) throws(RPCFailure) -> [String] {
    guard path.hasPrefix("/") else { return try Self.checked(path, option) }
    let root = try Self.checked(directory, option)
    let parts = try Self.checked(path, option)
    guard parts.starts(with: root) else {
      throw RPCFailure(
        "The option '\(option)' cannot be used: “\(path.prefix(200).escaped)” is outside of “\(directory)”, the folder of this server"
      )
    }
    return Array(parts.dropFirst(root.count))
  }

  private static func checked(_ path: String, _ option: String) throws(RPCFailure) -> [String] {
    // As the system separates them: also by a slash with a combining mark after it.
    let parts = path.unicodeScalars.split(separator: "/").map { String($0) }.filter { $0 != "." }
    guard !parts.contains(where: { $0 == ".." || $0.contains("\0") || $0.lowercased() == ".downpipe" }) else {
      throw outside(option, path)
    }
    return parts
  }

  private static func outside(_ option: String, _ path: String) -> RPCFailure {
    RPCFailure(
      "The option '\(option)' cannot be used: “\(path.prefix(200).escaped)” is not a path in the folder of this server")
  }

  /// Fields that say which bytes are asked for, or what the request has.
  private static let ofTheSource: Set = ["content-length", "range", "if-range", "expect", "host"]

  private func fields(_ values: [String: String]) throws(RPCFailure) -> HeaderFields {
    var fields: [HeaderField] = []
    for line in values["header"]?.split(separator: "\n") ?? [] {
      guard let colon = line.firstIndex(of: ":") else {
        throw RPCFailure("The option 'header' cannot be used: “\(line.prefix(80).escaped)” has no colon")
      }
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      fields.append(HeaderField(String(line[..<colon]), String(value)))
    }
    for (option, name) in [("referer", "Referer"), ("user-agent", "User-Agent")] {
      if let value = values[option], !fields.contains(where: { $0.name.lowercased() == name.lowercased() }) {
        fields.append(HeaderField(name, value))
      }
    }
    if let user = values["http-user"] {
      let secret = Data("\(user):\(values["http-passwd"] ?? "")".utf8).base64EncodedString()
      fields.append(HeaderField("Authorization", "Basic \(secret)"))
    }
    if let own = fields.first(where: { Self.ofTheSource.contains($0.name.lowercased()) }) {
      throw RPCFailure("The field “\(own.name.prefix(80).escaped)” cannot be used: the server's own requests have it")
    }
    guard let wrong = fields.first(where: { !$0.isValid }) else {
      return HeaderFields(fields.filter { !HTTPRequestFields.isOfTheConnection($0.name) })
    }
    throw RPCFailure(
      "The field “\(wrong.name.prefix(80).escaped)” cannot be used: a name has no spaces, and a value no line breaks")
  }
}
