#if LIBCURL
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation

  /// A server program of Debian with a folder of files.
  protocol RealServer: Sendable {
    var folder: TemporaryFolder { get }
    var server: ProcessServer { get }
    /// The source that may fetch from the server.
    var source: FileTransferSource { get }
    /// The URL of a file, whose path is percent-encoded.
    func text(_ path: String) -> String
  }

  extension RealServer {
    func url(_ path: String) throws -> URL { try DownloadRequest(text(path), id: "").url }

    /// Writes a file that was changed at the given time last.
    func add(_ name: String, _ bytes: [UInt8], modified: Date = Date(timeIntervalSince1970: 1_577_934_245)) throws {
      try folder.write(bytes, to: "files/\(name)")
      try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: folder.path("files/\(name)"))
    }
  }

  /// vsftpd, for anonymous users.
  struct FTPServer: RealServer {
    enum Security: Sendable, CaseIterable {
      case plain, explicitTLS, implicitTLS
    }

    let folder: TemporaryFolder
    let server: ProcessServer
    private let security: Security
    private let certificate: String

    /// - Parameter more: Further lines of the configuration.
    init(_ security: Security = .plain, more: String = "") async throws {
      self.security = security
      let folder = try TemporaryFolder()
      self.folder = folder
      certificate = folder.path("certificate.pem")
      try FileManager.default.createDirectory(atPath: folder.path("files"), withIntermediateDirectories: true)
      var text = """
        listen=NO
        run_as_launching_user=YES
        anonymous_enable=YES
        local_enable=NO
        no_anon_password=YES
        anon_root=\(folder.path("files"))
        anon_world_readable_only=NO
        seccomp_sandbox=NO
        xferlog_enable=YES
        log_ftp_protocol=YES
        xferlog_std_format=NO
        vsftpd_log_file=\(folder.path("log"))
        connect_from_port_20=NO
        \(more)

        """
      if security != .plain {
        try await Self.makeCertificate(in: folder)
        text += """
          ssl_enable=YES
          allow_anon_ssl=YES
          force_local_data_ssl=NO
          force_local_logins_ssl=NO
          force_anon_logins_ssl=YES
          force_anon_data_ssl=YES
          require_ssl_reuse=YES
          ssl_ciphers=HIGH
          implicit_ssl=\(security == .implicitTLS ? "YES" : "NO")
          rsa_cert_file=\(certificate)
          rsa_private_key_file=\(folder.path("key.pem"))

          """
      }
      let path = try folder.write(Array(text.utf8), to: "vsftpd.conf")
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      server = try ProcessServer("/usr/sbin/vsftpd", [path])
    }

    private static func makeCertificate(in folder: TemporaryFolder) async throws {
      let made = try await Program(
        "openssl",
        [
          "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost", "-addext",
          "subjectAltName=DNS:localhost", "-keyout", folder.path("key.pem"), "-out", folder.path("certificate.pem"),
        ])
      guard made.status == 0 else { throw DownloadError(.tls, "openssl made no certificate: \(made.output)") }
    }

    var configuration: FileTransferSource.Configuration {
      var configuration = FileTransferSource.Configuration()
      configuration.proxy = .none
      configuration.encryption = security == .plain ? .ifAvailable : .required
      if security != .plain {
        configuration.tls.trustRoots = .only(.file(certificate))
        configuration.resolve = [.init(host: "localhost", port: server.port, addresses: ["127.0.0.1"])]
      }
      return configuration
    }

    var source: FileTransferSource { FileTransferSource(configuration) }

    func text(_ path: String) -> String {
      let host = security == .plain ? "127.0.0.1" : "localhost"
      return "\(security == .implicitTLS ? "ftps" : "ftp")://\(host):\(server.port)/\(path)"
    }

    /// The commands that the server has received, as it logs them.
    func commands() throws -> [String] {
      String(decoding: try folder.read("log"), as: UTF8.self).split(separator: "\n").compactMap { line in
        line.range(of: "FTP command: ").map { String(line[$0.upperBound...].drop { $0 != "," }.dropFirst(2)) }
      }
    }
  }

  /// sshd, for the user that runs the tests and a key.
  struct SSHServer: RealServer {
    let folder: TemporaryFolder
    let server: ProcessServer

    init() async throws {
      let folder = try TemporaryFolder()
      self.folder = folder
      try FileManager.default.createDirectory(atPath: folder.path("files"), withIntermediateDirectories: true)
      for (name, passphrase) in [
        ("host", ""), ("other-host", ""), ("user", ""), ("locked", "a passphrase"), ("stranger", ""),
      ] {
        let made = try await Program(
          "ssh-keygen", ["-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", folder.path(name)])
        guard made.status == 0 else { throw DownloadError(.processing, "ssh-keygen made no key: \(made.output)") }
      }
      try folder.write(try folder.read("user.pub") + (try folder.read("locked.pub")), to: "authorized")
      let text = """
        HostKey \(folder.path("host"))
        AuthorizedKeysFile \(folder.path("authorized"))
        StrictModes no
        UsePAM no
        PermitRootLogin yes
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        PidFile none
        Subsystem sftp internal-sftp

        """
      let path = try folder.write(Array(text.utf8), to: "sshd.conf")
      // Debian makes it when the service starts; root needs it.
      if NSUserName() == "root" {
        try FileManager.default.createDirectory(atPath: "/run/sshd", withIntermediateDirectories: true)
      }
      server = try ProcessServer("/usr/sbin/sshd", ["-i", "-f", path])
      try know("host")
    }

    /// Makes one key the known one of the server.
    func know(_ key: String) throws {
      let text = String(decoding: try folder.read("\(key).pub"), as: UTF8.self)
      let fields = text.split(whereSeparator: \.isWhitespace).prefix(2).joined(separator: " ")
      try folder.write(Array("[127.0.0.1]:\(server.port) \(fields)\n".utf8), to: "known_hosts")
    }

    var configuration: FileTransferSource.Configuration {
      var configuration = FileTransferSource.Configuration()
      configuration.proxy = .none
      configuration.ssh.knownHosts = .file(folder.path("known_hosts"))
      configuration.ssh.usesAgent = false
      configuration.ssh.privateKey = .init(path: folder.path("user"), passphrase: nil)
      return configuration
    }

    var source: FileTransferSource { FileTransferSource(configuration) }

    func text(_ path: String) -> String { "sftp://127.0.0.1:\(server.port)\(folder.path("files"))/\(path)" }
  }

  /// The servers that every test of the common behaviour runs with.
  enum ServerKind: String, Sendable, CaseIterable {
    case ftp, ftpExplicitTLS, ftpImplicitTLS, sftp

    func start() async throws -> any RealServer {
      switch self {
      case .ftp: try await FTPServer(.plain)
      case .ftpExplicitTLS: try await FTPServer(.explicitTLS)
      case .ftpImplicitTLS: try await FTPServer(.implicitTLS)
      case .sftp: try await SSHServer()
      }
    }
  }
#endif
