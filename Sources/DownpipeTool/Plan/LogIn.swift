import Foundation

/// A name and a password. Its description is without the password.
struct LogIn: Sendable, Hashable, CustomStringConvertible {
  let user: String
  private let secret: Secret

  var password: String { secret.text }

  var description: String { user }

  init(user: String, password: String) {
    self.user = user
    secret = Secret(password)
  }

  /// Parses `name:password`, or a name whose password is in a file, in a variable, or asked for.
  ///
  /// - Parameters:
  ///   - option: The option that has the text, for messages.
  ///   - file: Another option and the file that it names.
  ///   - variable: The name of an environment variable.
  ///   - ask: Asks a person.
  init(
    _ text: String, option: String, file: (option: String, path: String)? = nil, variable: String,
    environment: [String: String] = ProcessInfo.processInfo.environment,
    ask: (_ prompt: String) throws(UsageError) -> String? = PasswordPrompt.ask
  ) throws(UsageError) {
    if let colon = text.firstIndex(of: ":") {
      self.init(user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
      guard file == nil else {
        throw UsageError("\(option) and \(file?.option ?? "") both have a password: remove one of them")
      }
    } else if let file {
      self.init(user: text, password: try FirstLine.read(file.path, option: file.option))
    } else if let password = environment[variable] {
      self.init(user: text, password: password)
    } else if let password = try ask("Password of \(text) (\(option)): ") {
      self.init(user: text, password: password)
    } else {
      throw UsageError(
        "\(option): there is no password, and no terminal to ask for it: set the variable \(variable)"
          + (option == "--user" ? ", or use --password-file" : ""))
    }
    // The value is not part of any message.
    guard !(user + password).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw UsageError("\(option): names and passwords have no control characters")
    }
  }
}

/// The first line of a file that has a secret.
enum FirstLine {
  static func read(_ path: String, option: String) throws(UsageError) -> String {
    guard Folder.kind(path) != .directory, let file = FileHandle(forReadingAtPath: path) else {
      throw UsageError("\(option): the file “\(path)” cannot be read")
    }
    defer { try? file.close() }
    guard let bytes = try? file.read(upToCount: 64 << 10) else {
      throw UsageError("\(option): the file “\(path)” cannot be read")
    }
    let line = bytes.prefix { $0 != 0x0A }
    return String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
  }
}
