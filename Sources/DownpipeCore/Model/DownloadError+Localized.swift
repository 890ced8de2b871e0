public import Foundation

/// The texts that an app shows for an error, in English. An app in another language chooses its texts by ``code``.
extension DownloadError: LocalizedError {
  /// What happened and, if known, what to do about it; also the value of `localizedDescription`.
  public var errorDescription: String? {
    let sentences = [failureReason, recoverySuggestion].compactMap { $0 }
    return sentences.joined(separator: " ")
  }

  /// What happened, as a sentence.
  public var failureReason: String? {
    // A first word with capitals or digits in it is a name and keeps its spelling.
    let word = message.prefix { !$0.isWhitespace }
    let isName = word.dropLast(word.last?.isPunctuation == true ? 1 : 0).contains { !$0.isLetter || $0.isUppercase }
    let sentence = isName ? message : message.prefix(1).uppercased() + message.dropFirst()
    return sentence.last.map { ".!?…".contains($0) } ?? false ? sentence : sentence + "."
  }

  /// What to do about the error; `nil` when there is no general advice for its code, and for codes
  /// that a stage defines.
  public var recoverySuggestion: String? {
    code == .httpStatus ? Self.suggestion(for: httpStatus) : Self.suggestions[code]
  }

  private static func suggestion(for status: Int?) -> String {
    switch status {
    case 401, 407: "Sign in, and try again."
    case 403: "Ask for access, or for a fresh link."
    case 404, 410: "Check the URL: the file may have moved."
    case 408, 425, 429, .some(500...): "Try again later."
    default: "Check the URL."
    }
  }

  private static let startAgain =
    "Open the link to see what the server sends now. To take that, restart the download from its beginning."
  private static let tryLater = "Try again later, or take the file from another server."

  private static let suggestions: [Code: String] = [
    .network: "Check the connection and resume the download. The received bytes are kept.",
    .offline: "Connect to a network and resume the download. The received bytes are kept.",
    .hostNotFound: "Check the name of the host in the URL, and the connection.",
    .tls: "Check the clock of this device and the server's certificate.",
    .timedOut: "Try again later. The received bytes are kept.",
    .fileNotFound: "Check the URL: the file may have moved.",
    .invalidResponse: tryLater,
    .tooManyRedirects: "Check the URL: it may require signing in.",
    .contentChanged: startAgain,
    .unproven: startAgain,
    .sizeChanged: startAgain,
    .wrongRange: tryLater,
    .wrongRangeEnd: tryLater,
    .unreadableRange: tryLater,
    .multipartRange: tryLater,
    .rangeIgnored: "Start the download again from its beginning: the server cannot resume it.",
    .rangeRefused: "Try again later: the server refuses to resume the file.",
    .rangeNotSatisfiable: startAgain,
    .wrongContentCoding: "Start the download again from its beginning.",
    .linkExpired: "Ask for a fresh link.",
    .lengthMismatch: "Try again: the connection may have broken off.",
    .pieceMismatch: "Resume the download to fetch the wrong pieces again.",
    .digestMismatch: "Start the download again. If the error remains, the server has another file than expected.",
    .noSpace: "Free some space and resume the download. The received bytes are kept.",
    .tooManyOpenFiles: "Close other files and connections, or raise their limit, and resume the download.",
    .inUse: "Wait until the other downloader has ended, and resume the download.",
    .permission: "Check the permissions of the folder.",
    .storage: "Check the disk and its folders.",
    .alreadyExists: "Move the existing file away, or choose another name.",
    .unsafePath: "Choose a name that stays inside the folder.",
    .tooLarge: "Raise the size limit if the file is meant to be this large.",
    .unsupportedURL: "Check the URL: its scheme is not supported.",
    .shutDown: "The download continues when a downloader is started again.",
  ]
}
