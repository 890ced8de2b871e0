import ArgumentParser
import Downpipe

/// Whose servers are trusted, and how this client proves who it is.
struct TLSOptions: ParsableArguments {
  @Option(
    name: [.customLong("ca-certificate"), .customLong("cacert")],
    help: ArgumentHelp(
      "Trust servers with a certificate from this PEM file only (default: those of the system, or the variables "
        + "SSL_CERT_FILE and SSL_CERT_DIR).", valueName: "file"), completion: .file())
  var caCertificate: String?

  @Option(
    name: [.customShort("E"), .long],
    help: ArgumentHelp("Identify with the client certificate in this PEM file.", valueName: "file"),
    completion: .file())
  var cert: String?

  @Option(
    help: ArgumentHelp("The key of --cert, where it is in another file.", valueName: "file"), completion: .file())
  var key: String?

  @Option(
    name: [.customLong("pinned-public-key"), .customLong("pinnedpubkey")],
    help: ArgumentHelp(
      "Require this public key of the server. Can be given several times: one of them must match.",
      valueName: "sha256//base64"))
  var pinnedPublicKey: [String] = []

  @Option(help: ArgumentHelp("Require this version of TLS or a later one: 1.2 or 1.3.", valueName: "version"))
  var tlsMin: TLSSettings.Version?

  @Flag(
    name: [.customShort("k"), .long],
    help: "Do not check who the server is: computers on the way can read and change everything.")
  var insecure = false

  /// - Throws: ``UsageError`` for files that do not exist.
  func settings() throws(UsageError) -> TLSSettings {
    if key != nil, cert == nil { throw UsageError("--key needs --cert: the certificate that the key belongs to") }
    if insecure, caCertificate != nil {
      throw UsageError("--insecure and --ca-certificate exclude each other: remove --insecure")
    }
    for pin in pinnedPublicKey where !Self.isDigest(pin) {
      throw UsageError(
        "--pinned-public-key “\(pin.prefix(80))”: write it as sha256// with the 44 characters of the digest in Base64")
    }
    return TLSSettings(
      trustRoots: try path(caCertificate, "--ca-certificate"), certificate: try path(cert, "--cert"),
      privateKey: try path(key, "--key"), pinnedPublicKeys: pinnedPublicKey, minimumVersion: tlsMin,
      isInsecure: insecure)
  }

  private func path(_ path: String?, _ option: String) throws(UsageError) -> String? {
    guard let path else { return nil }
    guard Folder.kind(path) == .file else { throw UsageError("\(option): “\(path)” is not a file") }
    return try Folder.absolutePath(path)
  }

  private static func isDigest(_ text: String) -> Bool {
    guard text.hasPrefix("sha256//") else { return false }
    let digits = text.dropFirst(8).utf8
    return digits.count == 44 && digits.last == UInt8(ascii: "=")
      && digits.dropLast().allSatisfy {
        switch $0 {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
        default: false
        }
      }
  }
}

extension TLSSettings.Version: ExpressibleByArgument {}
