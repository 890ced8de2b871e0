#if LIBCURL
  import Foundation

  /// The entries of a netrc file, as ftp(1) and curl read it.
  ///
  /// libcurl can read such files, too, but before 8.12 its parser takes another user's entry in some of them.
  package struct NetrcFile: Sendable {
    package struct Login: Sendable, Equatable {
      package let user: String
      package let password: String
    }

    private struct Entry {
      /// `nil` for every host.
      let host: String?
      var login: String?
      var password: String?
    }

    private var entries: [Entry] = []

    /// Reads a file; `nil` if it cannot be read. What follows the first mebibyte is ignored.
    init?(_ path: String) {
      guard let file = FileHandle(forReadingAtPath: path) else { return nil }
      defer { try? file.close() }
      guard let bytes = try? file.read(upToCount: 1 << 20) else { return nil }
      self.init(text: String(decoding: bytes, as: UTF8.self))
    }

    /// Reads the text of a file. What is not an entry is skipped.
    init(text: String) {
      var tokens = Tokens(text)
      while let token = tokens.next() {
        switch token {
        case "machine":
          guard let host = tokens.next(isValue: true) else { return }
          entries.append(Entry(host: host))
        case "default": entries.append(Entry(host: nil))
        case "login", "password", "account":
          guard let value = tokens.next(isValue: true) else { return }
          guard let last = entries.indices.last else { continue }
          if token == "login" { entries[last].login = value }
          if token == "password" { entries[last].password = value }
        case "macdef": tokens.skipMacro()
        default: continue
        }
      }
    }

    /// Returns the first login of a host.
    ///
    /// - Parameter user: The user whose password is wanted; `nil` for the first user. An entry without a user is for all
    ///   of them.
    func login(for host: String, user: String?) -> Login? {
      let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
      let own = entries.lazy.filter { entry in
        guard let name = entry.host else { return true }
        return name.caseInsensitiveCompare(bare) == .orderedSame || name.caseInsensitiveCompare(host) == .orderedSame
      }
      for entry in own {
        if let user {
          if let password = entry.password, (entry.login ?? user) == user {
            return Login(user: user, password: password)
          }
        } else if let login = entry.login {
          return Login(user: login, password: entry.password ?? "")
        }
      }
      return nil
    }
  }

  /// The words of a netrc file. A comment begins where a keyword could: passwords may begin with a number sign.
  private struct Tokens {
    private var rest: Substring.UnicodeScalarView

    init(_ text: String) { rest = text[...].unicodeScalars }

    mutating func next(isValue: Bool = false) -> String? {
      while let first = rest.first {
        if first.properties.isWhitespace {
          rest.removeFirst()
        } else if first == "#", !isValue {
          rest = rest.drop { $0 != "\n" }
        } else {
          return first == "\"" ? quoted() : plain()
        }
      }
      return nil
    }

    private mutating func plain() -> String {
      let word = rest.prefix { !$0.properties.isWhitespace }
      rest = rest[word.endIndex...]
      return String(word)
    }

    private mutating func quoted() -> String {
      rest.removeFirst()
      var word = String.UnicodeScalarView()
      while let scalar = rest.popFirst(), scalar != "\"" {
        guard scalar == "\\", let escaped = rest.popFirst() else {
          word.append(scalar)
          continue
        }
        switch escaped {
        case "n": word.append("\n")
        case "r": word.append("\r")
        case "t": word.append("\t")
        default: word.append(escaped)
        }
      }
      return String(word)
    }

    /// A macro ends with an empty line.
    mutating func skipMacro() {
      var isEmpty = false
      while let scalar = rest.popFirst() {
        if scalar == "\n" {
          if isEmpty { return }
          isEmpty = true
        } else if scalar != "\r" {
          isEmpty = false
        }
      }
    }
  }
#endif
