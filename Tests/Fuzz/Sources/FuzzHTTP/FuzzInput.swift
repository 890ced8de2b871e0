/// What libFuzzer's bytes mean: a byte of flags, a parameter, and the answers of the server.
struct FuzzInput {
  static let separator = Array("@@@@".utf8)

  /// The answer is sent in several pieces.
  let isCut: Bool
  /// The request continues a partial.
  let resumes: Bool
  let hasDigest: Bool
  let hasCookies: Bool
  /// The server leaves the connection open.
  let keepsOpen: Bool
  let decodes: Bool
  /// The reply is not read to its end.
  let drops: Bool
  let parameter: Int
  /// The answers to the first request and to later ones; the last one is repeated.
  let answers: [[UInt8]]

  init(_ bytes: [UInt8]) {
    let flags = bytes.first ?? 0
    isCut = flags & 1 != 0
    resumes = flags & 2 != 0
    hasDigest = flags & 4 != 0
    hasCookies = flags & 8 != 0
    keepsOpen = flags & 16 != 0
    decodes = flags & 32 != 0
    drops = flags & 64 != 0
    parameter = Int(bytes.dropFirst().first ?? 0)
    answers = bytes.dropFirst(2).split(separator: Self.separator, maxSplits: 3, omittingEmptySubsequences: false)
      .map(Array.init)
  }

  /// The answers in the pieces in which they are sent.
  var script: AnswerScript {
    let pieces = isCut ? 2 + parameter % 7 : 1
    return AnswerScript(
      answers: answers.map { answer in
        let size = max(1, (answer.count + pieces - 1) / pieces)
        return stride(from: 0, to: answer.count, by: size).map { Array(answer[$0..<min($0 + size, answer.count)]) }
      }, ending: keepsOpen ? .idle(milliseconds: 5) : .close)
  }
}
