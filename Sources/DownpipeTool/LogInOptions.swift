import ArgumentParser
import Downpipe
import Foundation

/// Names, passwords and cookies. The ledger has none of them.
struct LogInOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Log in with this name at the hosts of the URLs.",
      discussion: """
        Redirects to other hosts do not get it, and a name in a URL wins. Without a password, it is the first line of \
        --password-file, or the variable DOWNPIPE_PASSWORD, or the command asks for it: other users of the computer can \
        read a command line. Nothing is stored: “resume” needs the options again.
        """, valueName: "name[:password]"))
  var user: String?

  @Option(
    help: ArgumentHelp("Read the password for --user from the first line of this file.", valueName: "file"),
    completion: .file())
  var passwordFile: String?

  @Option(
    help: ArgumentHelp(
      "Choose how to log in with --user, --netrc or the name in a URL: basic sends the password at once, digest sends a "
        + "proof of it, any asks the server first (default: basic).", valueName: "method"))
  var auth: LogInSettings.Method?

  @Option(
    help: ArgumentHelp(
      "Log in with this bearer token; @FILE reads it from the first line of a file.", valueName: "token"))
  var bearer: String?

  @Flag(
    name: [.short, .long],
    help: ArgumentHelp(
      "Log in with the names and passwords of ~/.netrc.",
      discussion: "A name in the URL chooses among those of its host. Places that a server names get none."))
  var netrc = false

  @Option(help: ArgumentHelp("The same with this file.", valueName: "file"), completion: .file())
  var netrcFile: String?

  @Option(
    help: ArgumentHelp(
      "Send the cookies of this file, and store those that servers set. It has Netscape's format, as for curl; another file "
        + "is refused.",
      valueName: "file"), completion: .file())
  var cookieJar: String?

  /// - Throws: ``UsageError`` for a password that cannot be read, and for options that contradict each other.
  func settings() throws(UsageError) -> LogInSettings {
    if user == nil {
      if passwordFile != nil { throw UsageError("--password-file needs --user: the name that the password belongs to") }
    } else if bearer != nil {
      throw UsageError("--user and --bearer both log in: remove one of them")
    }
    var settings = LogInSettings(method: auth ?? .basic, bearerToken: try token(), cookieJar: try cookieFile())
    if let user {
      settings.logIn = try LogIn(
        user, option: "--user", file: passwordFile.map { ("--password-file", $0) }, variable: "DOWNPIPE_PASSWORD")
    }
    settings.netrc = try netrcPath()
    return settings
  }

  private func netrcPath() throws(UsageError) -> String? {
    guard netrc || netrcFile != nil else { return nil }
    // As for curl; the user database may name another folder.
    let home = ProcessInfo.processInfo.environment["HOME"] ?? NSHomeDirectory()
    let path = try Folder.absolutePath(netrcFile ?? home + "/.netrc")
    guard Folder.kind(path) == .file else {
      throw UsageError("\(netrcFile == nil ? "--netrc" : "--netrc-file"): “\(path)” is not a file")
    }
    return path
  }

  private func token() throws(UsageError) -> Secret? {
    guard let bearer else { return nil }
    let token =
      bearer.hasPrefix("@") ? try FirstLine.read(String(bearer.dropFirst()), option: "--bearer") : bearer
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw UsageError("--bearer: a token has no spaces and no line breaks")
    }
    return Secret(token)
  }

  /// A new file is fine: its folder must exist.
  private func cookieFile() throws(UsageError) -> String? {
    guard let cookieJar else { return nil }
    let path = try Folder.absolutePath(cookieJar)
    switch Folder.kind(path) {
    case .file: return path
    case nil where Folder.kind(URL(filePath: path).deletingLastPathComponent().path) == .directory: return path
    case nil: throw UsageError("--cookie-jar: the folder of “\(cookieJar)” does not exist: create it first")
    default: throw UsageError("--cookie-jar: “\(cookieJar)” is not a file")
    }
  }
}

extension LogInSettings.Method: ExpressibleByArgument {}
