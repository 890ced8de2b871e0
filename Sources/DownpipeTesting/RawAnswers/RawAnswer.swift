import DownpipeCore

/// An answer of a server, byte for byte, and what a source has to make of it.
struct RawAnswer: Sendable {
  /// What a source has to make of an answer.
  enum Expectation: Sendable {
    /// The file has exactly these bytes.
    case file(String)
    /// The source fails, with one of these codes.
    case refused([DownloadError.Code])
    /// The file has exactly these bytes, or the source fails: HTTP allows both.
    case fileOrRefused(String)
    /// The answer is no file, and the reply has its status.
    case status(Int)
  }

  /// The path of the first request, below the name of the answer.
  static let start = "start"
  /// The content of most files.
  static let text = "hello, world"

  /// The name of the rule, in kebab case.
  let name: String
  /// What the server does, for messages.
  let summary: String
  /// The bytes of the answer, one scalar an octet. `@HOST@` is replaced by the host and port of the server.
  let answer: String
  /// The answers to further requests, by their target below the name of the answer.
  var further: [String: String] = [:]
  let expectation: Expectation

  init(_ name: String, _ summary: String, _ answer: String, _ expectation: Expectation = .file(RawAnswer.text)) {
    self.name = name
    self.summary = summary
    self.answer = answer
    self.expectation = expectation
  }

  /// The answer to a request, then the end of the connection. The connection of a redirect stays open, because its end
  /// would race with the next request.
  func reply(to target: String, host: String) -> ScriptedReply {
    guard let text = target == Self.start ? answer : further[target] else { return .status(404) }
    let send = ScriptedReply.Step.send(Self.octets(text.replacing("@HOST@", with: host)))
    return ScriptedReply(target == Self.start && !further.isEmpty ? [send] : [send, .close])
  }

  /// Opens a URL that leads to the answer, reads the body, and compares.
  func check(_ open: () async throws -> SourceReply) async throws {
    guard let error = try await expectation.check(open) else { return }
    let field = "Transfer-Encoding"
    let isSent = ([answer] + further.values).contains { $0.lowercased().contains(field.lowercased()) }
    try expect(
      isSent || !error.message.contains(field), "the message blames a \(field) that was not sent: \(error.message)")
  }

  /// The bytes of a text with one scalar an octet.
  static func octets(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

  /// A response with the status 200.
  static func ok(_ fields: String, _ body: String = text) -> String { "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)" }

  /// Every answer.
  static let all = lengths + lines + transferCodings + bodies + redirects
}

extension RawAnswer.Expectation: CustomStringConvertible {
  /// The codes for an answer that the parser of a transport refuses. Some transports do not tell a malformed answer
  /// from a broken connection.
  static let malformed = Self.refused([.invalidResponse, .network])
  /// The codes for an answer with too large a head.
  static let tooLarge = Self.refused([.invalidResponse, .network, .tooLarge])
  /// The code for an answer that the core refuses.
  static let invalid = Self.refused([.invalidResponse])
  /// The code for a body that ends early, which a retry may complete.
  static let cutShort = Self.refused([.network])

  var description: String {
    switch self {
    case .file(let text): "the file has the \(text.unicodeScalars.count) bytes that the server means"
    case .refused(let codes): "it is refused, with the code \(codes.map(\.rawValue).joined(separator: " or "))"
    case .fileOrRefused: "the file has the bytes that the server means, or the answer is refused"
    case .status(let status): "the reply has no bytes, and the status \(status)"
    }
  }

  /// Opens a URL, reads its body, and compares.
  /// - Returns: The error for an answer that may be refused.
  fileprivate func check(_ open: () async throws -> SourceReply) async throws -> DownloadError? {
    let bytes: [UInt8]
    do {
      let reply = try await open()
      if case .none(let refusal) = reply.coverage {
        reply.body.discard()
        if case .status(let status) = self, refusal == .status(status) { return nil }
        throw Deviation("the reply is “\(refusal)”")
      }
      bytes = try await reply.bytes()
      try expectEqual(reply.coverage, .whole, "the coverage")
    } catch let error as DownloadError {
      switch self {
      case .fileOrRefused: return error
      case .refused(let codes) where codes.contains(error.code): return error
      case .refused, .file, .status: throw Deviation("it threw \(error)")
      }
    }
    switch self {
    case .file(let text), .fileOrRefused(let text):
      let expected = RawAnswer.octets(text)
      try expect(bytes == expected, "the file has \(Self.show(bytes)) instead of \(Self.show(expected))")
    case .refused, .status: throw Deviation("it was taken for a file with \(Self.show(bytes))")
    }
    return nil
  }

  private static func show(_ bytes: [UInt8]) -> String {
    "\(bytes.count) bytes, “\(String(decoding: bytes.prefix(40), as: UTF8.self).escaped)”"
  }
}
