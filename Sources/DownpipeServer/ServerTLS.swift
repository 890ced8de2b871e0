#if RPCTLS
  import Foundation
  import NIOCore
  import NIOPosix
  import NIOSSL
  import Synchronization
#endif

/// The certificate of a server, from two PEM files. They are read again when they have changed, so that a renewed certificate
/// needs no restart.
package final class ServerTLS: Sendable {
  #if RPCTLS
    private struct State {
      var context: NIOSSLContext
      var version: FileVersion
    }

    /// Tells whether the files are those that were read.
    private struct FileVersion: Hashable {
      private var files: [[Int64]]

      init(_ paths: [String]) {
        files = paths.map { path in
          var status = stat()
          guard stat(path, &status) == 0 else { return [] }
          #if canImport(Darwin)
            let time = status.st_mtimespec
          #else
            let time = status.st_mtim
          #endif
          return [Int64(status.st_ino), Int64(status.st_size), Int64(time.tv_sec), Int64(time.tv_nsec)]
        }
      }
    }

    private let certificate: String
    private let key: String
    private let report: @Sendable (String) -> Void
    private let state: Mutex<State>
    /// The time between two looks at the files.
    private static let interval: Duration = .seconds(60)

    /// Reads the files.
    ///
    /// - Parameters:
    ///   - certificate: The path of the certificate in PEM form, with those that lead to its authority after it.
    ///   - key: The path of its private key in PEM form, without a passphrase.
    ///   - report: Told why changed files cannot be used, once for each change.
    /// - Throws: ``ServerTLSError``.
    package init(
      certificate: String, key: String, report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws {
      self.certificate = certificate
      self.key = key
      self.report = report
      let version = FileVersion([certificate, key])
      state = Mutex(State(context: try Self.context(certificate, key), version: version))
    }

    private static func context(_ certificate: String, _ key: String) throws -> NIOSSLContext {
      let chain: [NIOSSLCertificate]
      do { chain = try NIOSSLCertificate.fromPEMFile(certificate) } catch {
        throw ServerTLSError("“\(certificate)” is not a certificate in PEM form that can be read")
      }
      var status = stat()
      if stat(key, &status) == 0, status.st_mode & 0o007 != 0 {
        throw ServerTLSError("everyone can read the private key “\(key)”: run “chmod o-rwx” on it", isOfKey: true)
      }
      let privateKey: NIOSSLPrivateKey
      do { privateKey = try NIOSSLPrivateKey(file: key, format: .pem) } catch {
        throw ServerTLSError(
          "“\(key)” is not a private key in PEM form, without a passphrase, that can be read", isOfKey: true)
      }
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(privateKey))
      configuration.minimumTLSVersion = .tlsv12
      configuration.applicationProtocols = ["http/1.1"]
      // What a client does not answer does not hold up the end of the server.
      configuration.shutdownTimeout = .milliseconds(200)
      do { return try NIOSSLContext(configuration: configuration) } catch {
        throw ServerTLSError(
          "the private key “\(key)” does not belong to the certificate “\(certificate)”", isOfKey: true)
      }
    }

    /// The handler of a new connection.
    func handler() -> NIOSSLServerHandler { NIOSSLServerHandler(context: state.withLock { $0.context }) }

    /// Reads changed files again. If they cannot be used, the former certificate stays: they may be incomplete.
    package func refresh() {
      let version = FileVersion([certificate, key])
      guard state.withLock({ $0.version }) != version else { return }
      do {
        let context = try Self.context(certificate, key)
        state.withLock { $0 = State(context: context, version: version) }
      } catch {
        report("the former certificate stays: \(error)")
        state.withLock { $0.version = version }
      }
    }

    /// Looks after the files until the task is cancelled.
    func watch() async {
      while (try? await Task.sleep(for: Self.interval)) != nil {
        try? await NIOThreadPool.singleton.runIfActive { self.refresh() }
      }
    }
  #else
    package init(
      certificate: String, key: String, report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws {
      throw ServerTLSError("this program was built without TLS for servers: build it with the trait RPCTLS")
    }
  #endif
}

/// Files that a server cannot use for TLS.
package struct ServerTLSError: Error, CustomStringConvertible {
  package let description: String
  /// Whether the private key is at fault, and not the certificate.
  package let isOfKey: Bool

  fileprivate init(_ description: String, isOfKey: Bool = false) {
    self.description = description
    self.isOfKey = isOfKey
  }
}
