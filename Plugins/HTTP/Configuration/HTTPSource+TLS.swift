#if LIBCURL
  import CCurl
  package import DownpipeCore
  import Foundation

  extension HTTPSource {
    /// The TLS settings of a source. By default it requires TLS 1.2 or later and verifies certificates and host names.
    public struct TLS: Sendable, Hashable {
      /// Certificates or a key in PEM format.
      public enum PEM: Sendable, Hashable, CustomStringConvertible {
        /// The PEM text.
        case text(String)
        /// The path of a file.
        case file(String)

        /// The path, or the word “text”: the text may be a private key.
        public var description: String {
          switch self {
          case .text: "text"
          case .file(let path): path
          }
        }
      }

      /// The certificate authorities that a source trusts.
      public enum TrustRoots: Sendable, Hashable {
        /// The authorities that the system trusts, or those of the variables `SSL_CERT_FILE` and `SSL_CERT_DIR`.
        case system
        /// The authorities of the system's folder, and the given ones.
        case systemAnd(PEM)
        /// Only the given authorities.
        case only(PEM)
      }

      /// The certificate with which the client authenticates itself.
      public struct ClientCertificate: Sendable, Hashable {
        /// The certificate, followed by its chain.
        public var chain: PEM
        /// The private key, without a passphrase.
        public var privateKey: PEM

        /// Combines a certificate chain and its key.
        public init(chain: PEM, privateKey: PEM) {
          self.chain = chain
          self.privateKey = privateKey
        }
      }

      /// A version of TLS.
      public enum Version: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        /// TLS 1.2 (RFC 5246).
        case tls12 = "1.2"
        /// TLS 1.3 (RFC 8446).
        case tls13 = "1.3"

        /// The number of the version.
        public var description: String { rawValue }
      }

      /// The certificate authorities that are trusted; the system's by default.
      public var trustRoots: TrustRoots = .system
      /// The certificate for servers that request one; none when `nil`, the default.
      ///
      /// It is shown to the origin of the request's URL only, not to other origins of redirects and not to places that a
      /// server has named (``/DownpipeCore/SourceRequest/isNamedByServer``): they would learn who asks.
      public var clientCertificate: ClientCertificate?
      /// The keys of which the server must have one, as `sha256//` and the Base64 digest of the key (RFC 7469 §2.4); any key
      /// when empty, the default.
      public var pinnedPublicKeys: [String] = []
      /// The oldest version that is accepted; TLS 1.2 by default.
      public var minimumVersion: Version = .tls12
      /// Whether the certificate and the host name of the server are verified; `true` by default.
      ///
      /// Without it everybody on the way can read and change what is transferred.
      public var verifiesServer = true

      /// Creates the default settings: the trust roots of the system and no client certificate.
      public init() {}
    }
  }

  extension HTTPSource.TLS {
    package var summary: [String] {
      var parts: [String] = []
      if trustRoots != .system { parts.append("own trust roots") }
      if clientCertificate != nil { parts.append("with a client certificate") }
      if !pinnedPublicKeys.isEmpty { parts.append("pinned keys") }
      if minimumVersion != .tls12 { parts.append("TLS \(minimumVersion) or later") }
      if !verifiesServer { parts.append("does not verify servers") }
      return parts
    }

    /// Rejects files that cannot be read, texts that are not PEM, and pins that are not digests.
    package func check() throws(DownloadError) {
      switch trustRoots {
      case .system: break
      case .systemAnd(let pem), .only(let pem): try Self.check(pem, "trust roots")
      }
      if let clientCertificate {
        try Self.check(clientCertificate.chain, "client certificate")
        try Self.check(clientCertificate.privateKey, "private key")
      }
      for pin in pinnedPublicKeys {
        guard pin.hasPrefix("sha256//"), Data(base64Encoded: String(pin.dropFirst(8)))?.count == 32 else {
          throw DownloadError(
            .tls, "the pinned key “\(pin.prefix(80).escaped)” is not sha256// and the Base64 form of a SHA-256 digest")
        }
      }
    }

    private static func check(_ pem: PEM, _ what: String) throws(DownloadError) {
      let place = if case .file(let path) = pem { " in \(path)" } else { "" }
      guard let text = pem.content, text.contains("-----BEGIN ") else {
        throw DownloadError(
          .tls, "the \(what)\(place) cannot be read: it must exist, in PEM format and without a passphrase")
      }
    }

    /// The certificate authorities of the environment, read once: each transfer asks for them.
    private static let environment: (file: String?, folder: String?) = {
      let variables = ProcessInfo.processInfo.environment
      func value(_ name: String) -> String? { variables[name].flatMap { $0.isEmpty ? nil : $0 } }
      return (value("SSL_CERT_FILE"), value("SSL_CERT_DIR"))
    }()

    /// Sets the options of a transfer. libcurl does not use a connection again for a request with another certificate.
    func prepare(_ handle: EasyHandle, showsCertificate: Bool) throws(DownloadError) {
      let version = minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
      handle.set(CURLOPT_SSLVERSION, Int(version))
      if !verifiesServer {
        handle.set(CURLOPT_SSL_VERIFYPEER, 0)
        handle.set(CURLOPT_SSL_VERIFYHOST, 0)
      }
      switch trustRoots {
      case .system:
        if let file = Self.environment.file { handle.set(CURLOPT_CAINFO, file) }
        if let folder = Self.environment.folder { handle.set(CURLOPT_CAPATH, folder) }
      case .systemAnd(let pem):
        if let folder = CurlLibrary.authorities.folder {
          try Self.set(pem, CURLOPT_CAINFO, downpipe_cainfo_blob, handle)
          handle.set(CURLOPT_CAPATH, folder)
        } else {
          // One file with the authorities of the system, as on Fedora and macOS.
          let system = CurlLibrary.authorities.file.flatMap { try? String(contentsOfFile: $0, encoding: .isoLatin1) }
          guard let system, let own = pem.content else {
            throw DownloadError(.tls, "the authorities that the system trusts cannot be found: use .only")
          }
          try Self.set(.text("\(system)\n\(own)"), CURLOPT_CAINFO, downpipe_cainfo_blob, handle)
        }
      case .only(let pem):
        try Self.set(pem, CURLOPT_CAINFO, downpipe_cainfo_blob, handle)
        handle.set(CURLOPT_CAPATH, nil)
      }
      if showsCertificate, let clientCertificate {
        try Self.set(clientCertificate.chain, CURLOPT_SSLCERT, downpipe_sslcert_blob, handle)
        try Self.set(clientCertificate.privateKey, CURLOPT_SSLKEY, downpipe_sslkey_blob, handle)
      }
      if !pinnedPublicKeys.isEmpty {
        try handle.require(
          handle.set(CURLOPT_PINNEDPUBLICKEY, pinnedPublicKeys.joined(separator: ";")), "pinned keys")
      }
    }

    private static func set(
      _ pem: PEM, _ file: CURLoption, _ blob: CURLoption, _ handle: EasyHandle
    ) throws(DownloadError) {
      let code =
        switch pem {
        case .file(let path): handle.set(file, path)
        case .text(let text): handle.set(blob, bytes: text)
        }
      guard code == CURLE_OK else {
        throw DownloadError(.tls, "this libcurl cannot take certificates from memory: give them in a file")
      }
    }
  }

  extension HTTPSource.TLS.PEM {
    /// The text; `nil` when the file cannot be read.
    fileprivate var content: String? {
      switch self {
      case .text(let text): text
      case .file(let path): try? String(contentsOfFile: path, encoding: .isoLatin1)
      }
    }
  }
#endif
