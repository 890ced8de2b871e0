#if LIBCURL
  public import DownpipeCore
  import Foundation

  extension HTTPSource {
    /// How a password is sent.
    public enum PasswordSchemes: Sendable, Hashable {
      /// Basic (RFC 7617), with the first request: readable for everybody on the way unless the URL is `https:`.
      case basic
      /// Digest (RFC 7616), after the server has asked for it.
      case digest
      /// The better one of those that the server offers, after it has asked.
      case any
    }

    /// A user name and password, or a token, for one origin.
    public struct Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
      enum Kind: Hashable {
        case password(user: String, password: String, PasswordSchemes)
        case bearer(String)
      }

      let kind: Kind
      /// The origin that they are sent to, and no other.
      public let origin: Origin

      /// Creates a user name and a password.
      public static func password(
        user: String, password: String, schemes: PasswordSchemes = .basic, for origin: Origin
      ) -> Credentials {
        Credentials(kind: .password(user: user, password: password, schemes), origin: origin)
      }

      /// Creates a bearer token (RFC 6750).
      public static func bearer(_ token: String, for origin: Origin) -> Credentials {
        Credentials(kind: .bearer(token), origin: origin)
      }

      var schemes: PasswordSchemes? {
        if case .password(_, _, let schemes) = kind { schemes } else { nil }
      }

      /// The origin, without the secret.
      public var description: String { "credentials for \(origin)" }

      /// The origin, without the secret, for `dump`.
      public var customMirror: Mirror { Mirror(self, children: ["origin": origin]) }
    }

    /// A netrc file.
    public enum Netrc: Sendable, Hashable {
      /// `.netrc` in the home folder.
      case home
      /// A file.
      case file(String)

      /// Returns the log-in of a host in the file; `nil` when there is none, or the file cannot be read.
      /// - Parameter user: The user whose password is wanted; `nil` for the first user.
      package func login(for origin: Origin, user: String?) -> NetrcFile.Login? {
        NetrcFile(path)?.login(for: origin.host, user: user)
      }

      private var path: String {
        switch self {
        case .home:
          FileManager.default.homeDirectoryForCurrentUser.appending(path: ".netrc").path(percentEncoded: false)
        case .file(let path): path
        }
      }
    }
  }
#endif
