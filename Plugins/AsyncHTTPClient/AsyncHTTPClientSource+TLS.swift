#if AsyncHTTPClient
  import DownpipeCore
  import NIOSSL

  extension AsyncHTTPClientSource {
    /// The TLS settings of a source. It requires TLS 1.2 or later and always verifies certificates and host names.
    public struct TLS: Sendable, Hashable {
      /// Certificates or a key in PEM format.
      public enum PEM: Sendable, Hashable {
        /// The PEM text.
        case text(String)
        /// The path of a file, read when the source starts.
        case file(String)
      }

      /// The certificate authorities that a source trusts.
      public enum TrustRoots: Sendable, Hashable {
        /// The authorities that the system trusts.
        case system
        /// The authorities that the system trusts, and the given ones.
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

        /// Combines a certificate chain and its key. They are read when the source starts.
        public init(chain: PEM, privateKey: PEM) {
          self.chain = chain
          self.privateKey = privateKey
        }
      }

      /// The certificate authorities that are trusted; the system's by default.
      public var trustRoots: TrustRoots = .system
      /// The certificate for servers that request one; none when `nil`, the default.
      ///
      /// It is shown to the origin of the request's URL only, not to other origins of redirects and not to places that a
      /// server has named (``/DownpipeCore/SourceRequest/isNamedByServer``): they would learn who asks.
      public var clientCertificate: ClientCertificate?

      /// Creates the default settings: the trust roots of the system and no client certificate.
      public init() {}

      /// - Throws: ``DownloadError`` with `.tls` when a certificate or the key cannot be read.
      func configuration(showsCertificate: Bool = true) throws(DownloadError) -> TLSConfiguration {
        var result = TLSConfiguration.makeClientConfiguration()
        result.minimumTLSVersion = .tlsv12
        switch trustRoots {
        case .system: break
        case .systemAnd(let pem):
          result.additionalTrustRoots = [.certificates(try Self.certificates(pem, "trust roots"))]
        case .only(let pem):
          result.trustRoots = .certificates(try Self.certificates(pem, "trust roots"))
        }
        if showsCertificate, let clientCertificate {
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
          .tls, "the \(what)\(place) cannot be read: it must exist, in PEM format and without a passphrase",
          cause: cause
        )
      }
    }
  }
#endif
