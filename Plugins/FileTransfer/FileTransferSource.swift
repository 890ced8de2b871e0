#if LIBCURL
  public import DownpipeCore
  public import Foundation

  /// Fetches `ftp:`, `ftps:` and `sftp:` URLs with libcurl.
  ///
  /// ```swift
  /// FileTransferSource()
  /// FileTransferSource { $0.encryption = .required }
  /// FileTransferSource { $0.ssh.privateKey = .init(path: "/home/me/.ssh/mirror", passphrase: nil) }
  /// ```
  /// FTP (RFC 959, RFC 3659) is passive and binary. `SIZE` and `MDTM` give the length and the validator, and `REST` the
  /// ranges. An `ftp:` URL is encrypted where the server can (`AUTH TLS`, RFC 4217), an `ftps:` URL from the first byte.
  /// SFTP is the file transfer of SSH; the host must be in the known hosts of OpenSSH.
  ///
  /// A log-in is sent to the origin that it was given for only: user information of the URL, a Basic `Authorization` field
  /// of the request, ``Configuration/credentials``, an entry of ``Configuration/netrc``, in this order. Without one, FTP is
  /// anonymous, and SFTP uses the name of the user and the keys of the agent.
  ///
  /// The path of an FTP URL is relative to the folder after the log-in; `%2F` at its beginning makes it absolute
  /// (RFC 1738 §3.2.2). That of an SFTP URL is absolute, or begins with `/~/` for the home folder. Folders are refused.
  ///
  /// It needs libcurl 7.75 or later, on Linux and macOS, and for SFTP one that was built with an SSH library.
  public struct FileTransferSource: Source {
    /// The settings of the source.
    public let configuration: Configuration

    /// Creates a source with the given settings.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Creates a source whose default settings the closure changes.
    public init(_ configure: (inout Configuration) throws -> Void) rethrows {
      var configuration = Configuration()
      try configure(&configuration)
      self.init(configuration)
    }

    /// The settings that differ from the default, for the printed pipeline.
    public var summary: String { configuration.summary }

    /// Returns whether `url` is an `ftp:`, `ftps:` or `sftp:` URL.
    public func accepts(_ url: URL) -> Bool { FileScheme(url) != nil }

    /// Creates the session of a run. Its threads start with the first request.
    /// - Throws: `DownloadError` with `.tls` when the certificates of the configuration cannot be read; `.invalidPipeline`
    ///   for settings that contradict each other.
    public func start(in context: SourceContext) async throws -> any SourceSession {
      try FileTransferSession(configuration)
    }
  }

  extension DownloadError.Code {
    /// The server has refused the log-in.
    public static let logInRefused = DownloadError.Code("logInRefused")
    /// The server denies access to the file.
    public static let accessDenied = DownloadError.Code("accessDenied")
    /// The host is not in the known hosts of SSH, so that nothing proves which server has answered.
    public static let unknownHostKey = DownloadError.Code("unknownHostKey")
    /// The host has another key than the known hosts of SSH say: another server may have answered.
    public static let changedHostKey = DownloadError.Code("changedHostKey")
  }
#endif
