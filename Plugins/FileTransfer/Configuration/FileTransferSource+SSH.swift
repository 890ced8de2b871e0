#if LIBCURL
  import DownpipeCore
  import Foundation

  extension FileTransferSource {
    /// The settings of SFTP. By default it trusts `~/.ssh/known_hosts`, and proves who asks with the keys of the SSH agent.
    public struct SSH: Sendable, Hashable {
      /// The file with the keys of hosts, in the format of OpenSSH; `~/.ssh/known_hosts` by default. A host that is not in
      /// it, or has another key, is refused; nothing is added to it.
      public var knownHosts: KnownHosts = .home

      /// Whether the keys of the SSH agent (`SSH_AUTH_SOCK`) are used; `true` by default.
      public var usesAgent = true

      /// The private key that proves who asks; none when `nil`, the default.
      public var privateKey: PrivateKey?

      /// Creates the default settings.
      public init() {}
    }

    /// A file with the keys of hosts.
    public enum KnownHosts: Sendable, Hashable {
      /// `~/.ssh/known_hosts`.
      case home
      /// A file.
      case file(String)

      var path: String {
        switch self {
        case .home:
          FileManager.default.homeDirectoryForCurrentUser.appending(path: ".ssh/known_hosts").path(
            percentEncoded: false)
        case .file(let path): path
        }
      }
    }

    /// A file with a private key.
    public struct PrivateKey: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
      /// The path of the private key.
      public let path: String
      /// The path of the public key; `nil` if libcurl's SSH library computes it from the private one, as with OpenSSL.
      public let publicKeyPath: String?
      let passphrase: String?

      /// Names a file with a private key.
      ///
      /// - Parameters:
      ///   - path: The path of the private key.
      ///   - publicKeyPath: The path of the public key; `nil` if libcurl's SSH library computes it from the private one.
      ///   - passphrase: The passphrase of the key; `nil` when it has none.
      public init(path: String, publicKeyPath: String? = nil, passphrase: String?) {
        self.path = path
        self.publicKeyPath = publicKeyPath
        self.passphrase = passphrase
      }

      /// The path, without the passphrase.
      public var description: String { path }

      /// The path, without the passphrase, for `dump`.
      public var customMirror: Mirror { Mirror(self, children: ["path": path]) }
    }
  }

  extension FileTransferSource.SSH {
    var summary: [String] {
      var parts: [String] = []
      if case .file(let path) = knownHosts { parts.append("known hosts of \(path)") }
      if !usesAgent { parts.append("no SSH agent") }
      if let privateKey { parts.append("key \(privateKey)") }
      return parts
    }
  }
#endif
