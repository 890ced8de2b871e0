#if Command && (os(Linux) || os(macOS))
  import DownpipeCore

  extension RunCommand {
    /// An argument of a program: fixed text, or a value of the download.
    ///
    /// ```swift
    /// let check = RunCommand("/usr/bin/clamscan", arguments: ["--no-summary", "--", .path])
    /// ```
    public struct Argument: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
      enum Kind: Sendable, Hashable {
        case text(String)
        case path, name, url
      }

      let kind: Kind

      /// Creates an argument of fixed text.
      public init(_ text: String) { kind = .text(text) }

      /// Creates an argument of fixed text from a literal.
      public init(stringLiteral value: String) { self.init(value) }

      private init(kind: Kind) { self.kind = kind }

      /// The absolute path of the artifact. The step fails for an artifact in memory.
      public static let path = Argument(kind: .path)

      /// The name of the artifact, which a server may have chosen; with `./` before it if it begins with a dash.
      public static let name = Argument(kind: .name)

      /// The URL of the request without user information, query and fragment: all users of a machine can read the
      /// arguments of its programs, and signed links have their secrets there.
      public static let url = Argument(kind: .url)

      /// The text, or the name of the value in angle brackets.
      public var description: String {
        switch kind {
        case .text(let text): text
        case .path: "<path>"
        case .name: "<name>"
        case .url: "<url>"
        }
      }

      func value(for artifact: Artifact, in context: ProcessingContext) throws(DownloadError) -> String {
        let value: String
        switch kind {
        case .text(let text):
          value = text
        case .path:
          guard let path = artifact.path else {
            throw DownloadError(
              .processing, "the file is in memory and has no path: use a storage that writes files, such as FileStore")
          }
          value = path
        case .name:
          value = artifact.name.hasPrefix("-") ? "./" + artifact.name : artifact.name
        case .url:
          value = context.request.url.resourceKey
        }
        // C would cut the argument there.
        guard !value.utf8.contains(0) else {
          throw DownloadError(.processing, "the argument “\(value.prefix(60))” has a NUL: remove it")
        }
        return value
      }
    }

    /// The variables of a program's environment.
    public struct Environment: Sendable, Hashable, CustomStringConvertible {
      let isInherited: Bool
      let variables: [String: String]

      /// The variables of this process.
      public static let inherited = Environment(isInherited: true, variables: [:])

      /// The variables of this process, with some added or replaced.
      public static func inherited(with variables: [String: String]) -> Self {
        Environment(isInherited: true, variables: variables)
      }

      /// These variables and no others.
      public static func only(_ variables: [String: String]) -> Self {
        Environment(isInherited: false, variables: variables)
      }

      /// The names of the variables. Their values may be secrets.
      public var description: String {
        let names = variables.keys.sorted().joined(separator: ", ")
        if isInherited { return names.isEmpty ? "the environment of this process" : "environment with \(names)" }
        return names.isEmpty ? "an empty environment" : "only \(names) in the environment"
      }
    }
  }
#endif
