import DownpipeCore
import Foundation

/// A source of the user's own, which a dead process cannot use any more.
struct SeveredSource: Source {
  /// Whether the transfer is counted already: a source may wrap that of the simulation.
  @TaskLocal static var isCounting = false

  let base: any Source
  let process: SimulatedProcess

  var name: String { base.name }
  var id: String { base.id }
  var summary: String { base.summary }

  func accepts(_ url: URL) -> Bool { base.accepts(url) }

  func start(in context: SourceContext) async throws -> any SourceSession {
    try process.checkAlive()
    return Session(base: try await base.start(in: context), process: process)
  }

  func decoder(for coding: String) -> (any PostProcessor<File, File>)? { base.decoder(for: coding) }

  private struct Session: SourceSession {
    let base: any SourceSession
    let process: SimulatedProcess

    func open(_ request: SourceRequest) async throws -> SourceReply {
      try process.checkAlive()
      var reply = try await base.open(request)
      try process.checkAlive()
      let (body, process) = (reply.body, process)
      reply.body = .pushing(file: body.file, discard: { body.discard() }) { sink in
        process.transferBegan(request.id)
        defer { process.transferEnded(request.id) }
        return try await SeveredSource.$isCounting.withValue(true) {
          try await body.forEachChunk { chunk in
            try process.checkAlive()
            try sink(chunk)
          }
        }
      }
      return reply
    }

    func stop() async { await base.stop() }
  }
}

/// A storage of the user's own, which a dead process cannot use any more.
///
/// A call that had begun when the process died may still take effect.
struct SeveredStorage: StorageWrapper {
  var mayBlock: Bool { base.mayBlock }
  let base: any Storage
  let process: SimulatedProcess

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try process.checkAlive()
    let partial = try await base.openPartial(key, isNew: isNew)
    guard process.isAlive else {
      try? partial.close()
      throw SimulatedProcess.death
    }
    return SeveredPartial(base: partial, process: process)
  }

  func removePartial(_ key: PartialKey) async throws {
    try process.checkAlive()
    try await base.removePartial(key)
  }

  func workspace(_ key: PartialKey) async throws -> String? {
    try process.checkAlive()
    return try await base.workspace(key)
  }

  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try process.checkAlive()
    let own = (partial as? SeveredPartial)?.base ?? partial
    return try await base.publish(artifact, of: own, at: destination, in: context)
  }

  func remove(_ artifact: Artifact) async throws {
    try process.checkAlive()
    try await base.remove(artifact)
  }
}

/// A partial of a ``SeveredStorage``.
struct SeveredPartial: PartialWrapper {
  let base: any Partial
  let process: SimulatedProcess

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    try process.checkAlive()
    try base.write(bytes, at: offset)
  }
  func truncate(to size: Int64) throws {
    try process.checkAlive()
    try base.truncate(to: size)
  }
  func synchronize() async throws {
    try process.checkAlive()
    try await base.synchronize()
  }
  func persist() throws {
    try process.checkAlive()
    try base.persist()
  }
  func adopt(_ path: String) throws -> Bool {
    try process.checkAlive()
    return try base.adopt(path)
  }
  func copy(_ path: String, count: Int64) async throws -> Int64? {
    try process.checkAlive()
    return try await base.copy(path, count: count)
  }
}

extension Storage {
  /// Whether the files are on a simulated disk, perhaps by way of wrappers.
  var isSimulated: Bool {
    if let wrapper = self as? any StorageWrapper { return wrapper.base.isSimulated }
    return self is SimulatedStorage
  }
}
