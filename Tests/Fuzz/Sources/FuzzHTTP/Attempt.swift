import DownpipeCore
import DownpipeHTTP
import Foundation
import FuzzSupport
import Synchronization

/// One request, and what must be true of its reply, for all bytes of the server.
struct Attempt: Sendable {
  struct SinkError: Error {}

  private let input: FuzzInput
  private let url: URL
  private let received = Received()

  init(_ input: FuzzInput, _ url: URL) {
    self.input = input
    self.url = url
  }

  func run(_ session: any SourceSession) async {
    let task = Task {
      // Some are cancelled before they begin.
      if input.drops, input.parameter % 8 == 7 { withUnsafeCurrentTask { $0?.cancel() } }
      try await fetch(session)
    }
    do {
      try await task.value
    } catch is DownloadError {
    } catch is CancellationError where input.drops {
    } catch is SinkError where input.drops {
    } catch {
      fail("the source threw \(type(of: error)): \(error)")
    }
  }

  private func fetch(_ session: any SourceSession) async throws {
    var request = SourceRequest(url: url)
    if input.resumes {
      request.range = RequestedRange(from: 5)
      request.validator = Validator(entityTag: EntityTag("a"))
    }
    let reply = try await session.open(request)
    let url = reply.finalURL ?? self.url
    if url.scheme != "http" || url.port != self.url.port { fail("the reply is of \(url)") }
    if reply.redirects.count > 3 { fail("there were \(reply.redirects.count) redirects") }
    if input.drops, try await drop(reply) { return }
    try await read(reply)
    if input.decodes { await decode(reply) }
  }

  private func read(_ reply: SourceReply) async throws {
    var start: Int64 = 0
    if case .range(let range, _) = reply.coverage { start = range.lowerBound }
    let limit = Fuzzing.maximumSize - start
    let received = received
    try await reply.body.forEachChunk { chunk in
      if chunk.isEmpty { fail("a chunk is empty") }
      let count = chunk.withUnsafeBytes { received.append($0) }
      if count > limit { fail("the body has \(count) bytes, more than \(limit)") }
    }
    switch reply.coverage {
    case .whole, .range:
      if let length = reply.length.bytes, received.count != length {
        fail("the body has \(received.count) bytes and not \(length)")
      }
      if case .range(let range, _) = reply.coverage, received.count > range.count, reply.length.bytes != nil {
        fail("the body has \(received.count) bytes, and the range \(range.count)")
      }
    case .multipart, .unreadable, .none: break
    }
  }

  /// Ends the reply in one of many ways.
  /// - Returns: `false` if the body is still to be read.
  private func drop(_ reply: SourceReply) async throws -> Bool {
    switch input.parameter % 8 {
    case 0:
      reply.body.discard()
      return true
    case 1: return true
    case 2:
      withUnsafeCurrentTask { $0?.cancel() }
      return false
    case 3:
      try await reply.body.forEachChunk { _ in throw SinkError() }
      return true
    case 4:
      reply.body.discard()
      return false
    case 5:
      let task = Task { try await reply.body.forEachChunk { _ in } }
      task.cancel()
      try await task.value
      return true
    case 6:
      async let first = reply.body.forEachChunk { _ in }
      async let second = reply.body.forEachChunk { _ in }
      do { try await first } catch is DownloadError {}
      try await second
      return true
    default: return false
    }
  }

  /// Removes the codings as the engine does.
  private func decode(_ reply: SourceReply) async {
    guard let codings = reply.contentCoding?.split(separator: ", ") else { return }
    var file = File(Artifact(location: .memory(received.bytes), name: "file", size: .known(received.count)))
    for coding in codings.reversed() {
      var configuration = HTTPSource.Configuration()
      configuration.maximumSize = Fuzzing.maximumSize
      guard let step = HTTPSource(configuration).decoder(for: String(coding)) else { return }
      do {
        let request = DownloadRequest(url)
        file = try await step.process(file, in: ProcessingContext(request: request, workspace: nil))
      } catch let error as DownloadError {
        if ![.damaged, .tooLarge].contains(error.code) { fail("the decoder threw \(error)") }
        return
      } catch {
        fail("the decoder threw \(type(of: error)): \(error)")
      }
      guard case .memory(let bytes) = file.artifact.location, bytes.count <= Fuzzing.maximumSize,
        file.artifact.size == .known(Int64(bytes.count))
      else { fail("the decoder's output has \(file.artifact.size)") }
    }
  }
}

/// The bytes of a body.
final class Received: Sendable {
  private let all = Mutex<[UInt8]>([])
  var bytes: [UInt8] { all.withLock { $0 } }
  var count: Int64 { Int64(all.withLock { $0.count }) }

  /// - Returns: The number of bytes so far.
  func append(_ bytes: UnsafeRawBufferPointer) -> Int64 {
    all.withLock { all in
      all.append(contentsOf: bytes)
      return Int64(all.count)
    }
  }
}
