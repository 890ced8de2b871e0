#if LIBCURL
  import Foundation

  /// The files of AWS's tools: `credentials`, and `config`, in which other profiles than `default` are `[profile name]`.
  struct ProfileFiles: Sendable {
    let profile: String
    let credentialsPath: String
    let configPath: String
    /// A file that is larger is none of these.
    private static let largest = 1 << 20

    init(profile: String?, _ environment: [String: String]) {
      func set(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
      self.profile = profile ?? set("AWS_PROFILE") ?? set("AWS_DEFAULT_PROFILE") ?? "default"
      let home = (set("HOME") ?? NSHomeDirectory()) + "/.aws"
      credentialsPath = set("AWS_SHARED_CREDENTIALS_FILE") ?? home + "/credentials"
      configPath = set("AWS_CONFIG_FILE") ?? home + "/config"
    }

    /// A value of the profile. That of `credentials` comes first.
    func value(_ name: String) -> String? {
      Self.section(profile, of: credentialsPath)?[name]
        ?? Self.section(profile == "default" ? "default" : "profile \(profile)", of: configPath)?[name]
    }

    /// The keys of the profile; `nil` if it has none.
    var keys: S3Keys? {
      for (path, name) in [
        (credentialsPath, profile), (configPath, profile == "default" ? "default" : "profile \(profile)"),
      ] {
        let values = Self.section(name, of: path)
        if let id = values?["aws_access_key_id"], let secret = values?["aws_secret_access_key"] {
          return S3Keys(id: id, secret: secret, token: values?["aws_session_token"])
        }
      }
      return nil
    }

    /// The values of a section; `nil` if the file cannot be read or has no such section.
    private static func section(_ name: String, of path: String) -> [String: String]? {
      guard let file = FileHandle(forReadingAtPath: path), let data = try? file.read(upToCount: largest) else {
        return nil
      }
      return section(name, in: String(decoding: data, as: UTF8.self))
    }

    /// Lines are `[section]`, `name = value`, or comments. Lines that begin with a blank belong to a value with parts, which
    /// none of these has.
    static func section(_ name: String, in text: String) -> [String: String]? {
      var values: [String: String]?
      var isInside = false
      for line in text.split(whereSeparator: \.isNewline) {
        if let first = line.first, first.isWhitespace || first == "#" || first == ";" { continue }
        let line = line.trimmingCharacters(in: .whitespaces)
        if line.hasPrefix("["), let end = line.firstIndex(of: "]") {
          let words = line[line.index(after: line.startIndex)..<end].split(whereSeparator: \.isWhitespace)
          isInside = words.joined(separator: " ") == name
          if isInside { values = values ?? [:] }
        } else if isInside, let equals = line.firstIndex(of: "=") {
          let key = line[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
          values?[key] = line[line.index(after: equals)...].trimmingCharacters(in: .whitespaces)
        }
      }
      return values
    }
  }
#endif
