public import Foundation

/// What an app shows of an error. In English: an app that speaks other languages chooses its words by ``code``.
extension DownloadError: LocalizedError {
  /// What happened, and what to do about it where that is known: what `localizedDescription` says.
  public var errorDescription: String? {
    let sentences = [failureReason, recoverySuggestion].compactMap { $0 }
    return sentences.joined(separator: " ")
  }

  /// What happened, as a sentence.
  public var failureReason: String? {
    // A first word with capitals or digits in it is a name and stays.
    let word = message.prefix { !$0.isWhitespace }
    let isName = word.dropLast(word.last?.isPunctuation == true ? 1 : 0).contains { !$0.isLetter || $0.isUppercase }
    let sentence = isName ? message : message.prefix(1).uppercased() + message.dropFirst()
    return sentence.last.map { ".!?…".contains($0) } ?? false ? sentence : sentence + "."
  }

  /// What to do about it; `nil` where only the message can say, and for a stage's own codes.
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
    "Start the download again from its beginning: the file on the server is not the one that it began with."
  private static let tryLater = "Try again later, or take the file from another server."

  private static let suggestions: [Code: String] = [
    .network: "Check the connection and resume the download: what has arrived is kept.",
    .offline: "Connect to a network and resume the download: what has arrived is kept.",
    .hostNotFound: "Check the name of the host in the URL, and the connection.",
    .tls: "Check the clock of this device and the server's certificate.",
    .timedOut: "Try again later: what has arrived is kept.",
    .invalidResponse: tryLater,
    .tooManyRedirects: "Check the URL: it may ask for a log-in.",
    .contentChanged: startAgain,
    .unproven: startAgain,
    .sizeChanged: startAgain,
    .wrongRange: tryLater,
    .wrongRangeEnd: tryLater,
    .unreadableRange: tryLater,
    .multipartRange: tryLater,
    .rangeIgnored: "Start the download again from its beginning: the server cannot resume it.",
    .rangeNotSatisfiable: startAgain,
    .wrongContentCoding: "Start the download again from its beginning.",
    .linkExpired: "Ask for a fresh link.",
    .lengthMismatch: "Try again: the connection may have broken off.",
    .digestMismatch: "Start the download again; if that does not help, the file is not the one that was promised.",
    .noSpace: "Free some space and resume the download: what has arrived is kept.",
    .tooManyOpenFiles: "Close other files and connections, or allow more of them, and resume the download.",
    .inUse: "Wait until the other downloader has ended, and resume the download.",
    .permission: "Check the permissions of the folder.",
    .storage: "Check the disk and its folders.",
    .alreadyExists: "Move the file that is there away, or choose another name.",
    .unsafePath: "Choose a name that stays inside the folder.",
    .tooLarge: "Allow more bytes if the file is meant to be so large.",
    .unsupportedURL: "Check the URL: its scheme is not supported.",
    .shutDown: "The download goes on when a downloader is opened again.",
  ]
}
