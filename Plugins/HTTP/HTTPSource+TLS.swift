import DownpipeCore
import NIOSSL

extension HTTPSource {
  /// Whom to trust, and who to be. At least TLS 1.2; certificates and host names are always verified.
  public struct TLS: Sendable, Hashable {
    /// Certificates or a key in PEM form.
    public enum PEM: Sendable, Hashable {
      /// The text itself.
      case text(String)
      /// The path of a file, read when the source starts.
      case file(String)
    }

    /// The certificate authorities to trust.
    public enum TrustRoots: Sendable, Hashable {
      /// The system's.
      case system
      /// The system's, and these.
      case systemAnd(PEM)
      /// These alone.
      case only(PEM)
    }

    /// A certificate to show to servers that ask for one.
    public struct ClientCertificate: Sendable, Hashable {
      /// The certificate, followed by its chain.
      public var chain: PEM
      /// Its private key, without a passphrase.
      public var privateKey: PEM

      /// Makes a client certificate.
      public init(chain: PEM, privateKey: PEM) {
        self.chain = chain
        self.privateKey = privateKey
      }
    }

    /// The certificate authorities to trust; the system's by default.
    public var trustRoots: TrustRoots = .system
    /// A certificate to show to servers that ask for one; none by default.
    public var clientCertificate: ClientCertificate?

    /// The defaults.
    public init() {}

    /// - Throws: ``DownloadError`` with `.tls` when a certificate or the key cannot be read.
    func configuration() throws(DownloadError) -> TLSConfiguration {
      var result = TLSConfiguration.makeClientConfiguration()
      result.minimumTLSVersion = .tlsv12
      switch trustRoots {
      case .system: break
      case .systemAnd(let pem):
        result.additionalTrustRoots = [.certificates(try Self.certificates(pem, "trust roots"))]
      case .only(let pem):
        result.trustRoots = .certificates(try Self.certificates(pem, "trust roots"))
      }
      if let clientCertificate {
        result.certificateChain = try Self.certificates(clientCertificate.chain, "client certificate")
          .map { .certificate($0) }
        result.privateKey = .privateKey(try Self.key(clientCertificate.privateKey))
      }
      return result
    }

    private static func certificates(_ pem: PEM, _ what: String) throws(DownloadError) -> [NIOSSLCertificate] {
      do {
        let certificates =
          switch pem {
          case .text(let text): try NIOSSLCertificate.fromPEMBytes(Array(text.utf8))
          case .file(let path): try NIOSSLCertificate.fromPEMFile(path)
          }
        if !certificates.isEmpty { return certificates }
      } catch {
        throw unreadable(pem, what, error)
      }
      throw unreadable(pem, what, nil)
    }

    private static func key(_ pem: PEM) throws(DownloadError) -> NIOSSLPrivateKey {
      do {
        return switch pem {
        case .text(let text): try NIOSSLPrivateKey(bytes: Array(text.utf8), format: .pem)
        case .file(let path): try NIOSSLPrivateKey(file: path, format: .pem)
        }
      } catch {
        throw unreadable(pem, "private key", error)
      }
    }

    private static func unreadable(_ pem: PEM, _ what: String, _ cause: (any Error)?) -> DownloadError {
      let place = if case .file(let path) = pem { " in \(path)" } else { "" }
      return DownloadError(
        .tls, "the \(what)\(place) cannot be read: it must be there, in PEM form and without a passphrase", cause: cause
      )
    }
  }
}
