import ArgumentParser
import Downpipe
import DownpipeRPC
import DownpipeServer
import Foundation

/// Who may drive `downpipe serve`, and from where.
struct ClientOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Listen at this port of the loopback interface, at address:port, or at a socket in the file system, unix:/path. A socket "
        + "that systemd passes goes first.", valueName: "place"))
  var rpcListen = "6800"

  @Option(
    help: ArgumentHelp(
      "Read the token of clients from this file, which is made if it does not exist (default: <dir>/.downpipe/rpc-secret).",
      valueName: "file"),
    completion: .file())
  var rpcSecretFile: String?

  @Flag(help: "Let in everyone who can connect, without a token: with --rpc-listen unix:/path only.")
  var rpcNoSecret = false

  @Option(
    help: ArgumentHelp(
      "Speak TLS with the certificate in this PEM file, which is read again when it has changed (trait RPCTLS).",
      valueName: "file"),
    completion: .file())
  var rpcCertificate: String?

  @Option(
    help: ArgumentHelp("The private key of --rpc-certificate, a PEM file.", valueName: "file"), completion: .file())
  var rpcPrivateKey: String?

  @Option(
    help: ArgumentHelp(
      "Let in pages of this origin, such as https://ariang.example; “null” for pages in files.", valueName: "origin"))
  var rpcAllowOrigin: [String] = []

  @Option(help: ArgumentHelp("Let browsers in that use this name of the server.", valueName: "host"))
  var rpcAllowHost: [String] = []

  @Flag(help: "Do not let clients end the server.")
  var rpcNoShutdown = false

  @Flag(
    help: ArgumentHelp(
      """
      Let URLs of clients reach addresses of this machine and network, and use --netrc, --cookie-jar and proxies. Use it only \
      if you trust the clients.
      """))
  var trustClients = false

  func validate() throws {
    guard let address = ListenAddress(rpcListen) else {
      throw ValidationError("--rpc-listen: write a port, address:port, or unix:/path")
    }
    let isInFileSystem = if case .unix = address { true } else { false }
    if rpcNoSecret, !isInFileSystem {
      throw ValidationError("--rpc-no-secret works with --rpc-listen unix:/path only: others could reach a port")
    }
    if rpcNoSecret, rpcSecretFile != nil {
      throw ValidationError("--rpc-no-secret and --rpc-secret-file exclude each other")
    }
    if (rpcCertificate == nil) != (rpcPrivateKey == nil) {
      throw ValidationError("--rpc-certificate and --rpc-private-key need each other")
    }
  }

  #if RPC
    /// - Throws: ``UsageError`` for a file that cannot be used.
    func configuration(directory: String, settings: PipelineSettings) throws -> RPCServer.Configuration {
      let inherited = Self.inherited
      if rpcNoSecret, let inherited, !Self.isInFileSystem(inherited) {
        throw UsageError("--rpc-no-secret: the socket that was passed is a port, which others could reach")
      }
      guard let address = inherited.map({ .inherited(descriptor: $0) }) ?? RPCServer.Address(rpcListen) else {
        throw UsageError("--rpc-listen: write a port, address:port, or unix:/path")
      }
      let secret = rpcNoSecret ? nil : try secret(directory: directory)
      var configuration = RPCServer.Configuration(directory: directory, secret: secret, address: address)
      configuration.maximumConnections = Self.mostClients
      configuration.report = { OutputFile.warn($0) }
      configuration.hosts = Set(rpcAllowHost)
      if let rpcCertificate, let rpcPrivateKey {
        configuration.certificate = .init(
          file: try Folder.absolutePath(rpcCertificate), keyFile: try Folder.absolutePath(rpcPrivateKey))
      }
      configuration.origins = Set(rpcAllowOrigin)
      configuration.allowsShutdown = !rpcNoShutdown
      configuration.version = ToolVersion.current
      configuration.schemes = Set(PipelineSettings.schemes)
      configuration.options = [
        "max-concurrent-downloads": String(settings.jobs), "max-tries": String(settings.retries + 1),
        "split": String(settings.segmented?.connections.maximum ?? 1),
        // aria2 knows no more.
        "max-connection-per-server": String(min(16, settings.segmented?.connections.maximum ?? 1)),
        "min-split-size": String(max(1 << 20, (settings.segmented ?? Segmented()).minimumSize / 2)),
        "max-overall-download-limit": String(settings.rateLimit?.rate.bytesPerSecond ?? 0),
        "allow-overwrite": String(settings.conflict == .replace),
        "auto-file-renaming": String(settings.conflict != .fail),
        "connect-timeout": Self.seconds(settings.connectTimeLimit ?? .seconds(30)),
        "lowest-speed-limit": String(settings.network.minimumSpeed ?? 0),
        // A request names its steps.
        "remote-time": "false",
      ]
      let isUntrusted = !trustClients
      configuration.prepare = { request in
        RequestSteps().attach(to: &request)
        request.isUntrusted = isUntrusted
      }
      configuration.prepareChange = { request in
        // The owner's own downloads keep their steps.
        if isUntrusted { request.isUntrusted = true }
      }
      return configuration
    }

    /// A time as aria2 tells it: it knows no more than 600 seconds.
    private static func seconds(_ time: Duration) -> String {
      String(Int64(min(max((time / .seconds(1)).rounded(.up), 1), 600)))
    }

    /// The most connections of clients, which need descriptors as downloads do.
    static var mostClients: Int { DescriptorLimit.mostClients(of: ServerLimits().connections) }

    /// The socket that a service manager passes (sd_listen_fds(3)).
    private static var inherited: Int32? {
      let environment = ProcessInfo.processInfo.environment
      guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == getpid(),
        environment["LISTEN_FDS"].flatMap({ Int($0) }) ?? 0 > 0
      else { return nil }
      // Programs that are started do not get it.
      _ = fcntl(3, F_SETFD, FD_CLOEXEC)
      return 3
    }

    private static func isInFileSystem(_ descriptor: Int32) -> Bool {
      var address = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let result = withUnsafeMutablePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
      }
      return result == 0 && Int32(address.ss_family) == AF_UNIX
    }

    /// What a user has to know to connect, a line each.
    func greeting(port: Int?) -> [String] {
      if Self.inherited != nil { return ["listening at the socket that was passed"] }
      guard let port else { return ["listening at \(rpcListen)"] }
      let host = rpcListen.lastIndex(of: ":").map { String(rpcListen[..<$0]) } ?? "127.0.0.1"
      let scheme = rpcCertificate == nil ? "http" : "https"
      return ["listening at \(scheme)://\(host):\(port)/jsonrpc", "the page is \(scheme)://\(host):\(port)/"]
    }

    private func secret(directory: String) throws -> RPCSecret {
      let text = rpcSecretFile ?? directory + "/.downpipe/rpc-secret"
      let path = try Folder.absolutePath(text)
      if Folder.kind(path) == nil {
        let secret = RPCSecret.generate()
        if rpcSecretFile == nil { _ = try Folder.prepare(directory + "/.downpipe", option: "--directory") }
        let file = try PrivateFile.create(path, option: "--rpc-secret-file", replaces: false)
        try file.output.write(secret + "\n")
        try file.finish()
        // Elsewhere a log may keep it.
        let shown = OutputFile.standardError.isTerminal ? " \(secret), and is" : ""
        OutputFile.warn("the token of clients is\(shown) kept in \(path)")
        return try RPCSecret(secret)
      }
      guard let bytes = FileManager.default.contents(atPath: path) else {
        throw UsageError("--rpc-secret-file: “\(path)” cannot be read")
      }
      var status = stat()
      if stat(path, &status) == 0, status.st_mode & 0o077 != 0 {
        throw UsageError("--rpc-secret-file: others can read “\(path)”: run “chmod 600” on it")
      }
      let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      guard let line = lines.first?.trimmingCharacters(in: .whitespaces), !line.isEmpty else {
        throw UsageError("--rpc-secret-file: “\(path)” is empty: delete it, and a token is made")
      }
      return try RPCSecret(line)
    }
  #endif
}
