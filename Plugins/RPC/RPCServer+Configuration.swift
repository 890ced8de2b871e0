public import DownpipeCore
import DownpipeServer
import Foundation

extension RPCServer {
  /// Where a server listens, and what its clients may do.
  public struct Configuration: Sendable {
    /// Where the server listens; port 6800 of this machine by default.
    public var address: Address
    /// The token that clients have to send; `nil` lets in everyone who can connect.
    public var secret: RPCSecret?
    /// The certificate of the server, for TLS; `nil` for connections that are not encrypted, over which others may read the
    /// token. It needs the trait `RPCTLS`.
    public var certificate: Certificate?
    /// Further names under which browsers may reach the server. Addresses and `localhost` always work: a name that a stranger
    /// has led here (DNS rebinding) must not.
    public var hosts: Set<String> = []
    /// The origins of pages that may use the server beside its own, such as `https://ariang.example`; `*` for all. A page in a
    /// file has the origin `null`.
    public var origins: Set<String> = []
    /// The absolute path of the folder of all downloads, which is that of the downloader's storage. The options `dir` and
    /// `out` stay inside it.
    public var directory: String
    /// The schemes of URLs that clients may add.
    public var schemes: Set<String> = ["http", "https", "ftp", "ftps", "sftp"]
    /// What is in effect of options that the server was started with, by the names of aria2. Clients are told these values,
    /// and another one is refused where an option cannot be changed.
    public var options: [String: String] = [:]
    /// Whether the server shows a page at `/`: the queue and its history, limits, the pipeline. It needs the token for all that
    /// it shows.
    public var showsPage = true
    /// Whether clients may end the server (`aria2.shutdown`).
    public var allowsShutdown = true
    /// The most connections of clients at a time; further ones are closed at once. An address gets half of them.
    public var maximumConnections = 256
    /// Told what the operator should know and no client is told: a renewed certificate that cannot be used. Called on a thread of
    /// the server.
    public var report: @Sendable (String) -> Void = { _ in }
    /// The version of the program, which clients are told.
    public var version = ""
    /// Changes or refuses each request before it is added. An error that it throws is told to the client.
    public var prepare: @Sendable (inout DownloadRequest) throws -> Void = { _ in }

    /// Changes or refuses each request to which a client gives other places or options: what is to hold for requests of clients
    /// must hold for one of another program that a client has changed. An error that it throws is told to the client.
    public var prepareChange: @Sendable (inout DownloadRequest) throws -> Void = { _ in }

    /// Creates a configuration.
    ///
    /// - Parameters:
    ///   - directory: The absolute path of the folder of all downloads.
    ///   - secret: The token of clients; `nil` lets in everyone who can connect.
    ///   - address: Where the server listens.
    public init(directory: String, secret: RPCSecret?, address: Address = .tcp(host: "127.0.0.1", port: 6800)) {
      self.directory = directory
      self.secret = secret
      self.address = address
    }
  }

  /// The certificate of a server, and its private key.
  ///
  /// The files are read again within a minute when they have changed; if the new ones cannot be used, the former ones stay.
  public struct Certificate: Sendable, Hashable {
    /// The path of the certificate in PEM form, with those that lead to its authority after it.
    public var file: String
    /// The path of the private key in PEM form, without a passphrase, which others cannot read.
    public var keyFile: String

    /// Creates a certificate.
    ///
    /// - Parameters:
    ///   - file: The path of the certificate in PEM form, with those that lead to its authority after it.
    ///   - keyFile: The path of the private key in PEM form.
    public init(file: String, keyFile: String) {
      self.file = file
      self.keyFile = keyFile
    }
  }

  /// Where a server listens.
  public struct Address: Sendable, Hashable {
    let listen: ListenAddress

    /// An address and a port; port 0 means any free port.
    public static func tcp(host: String, port: Int) -> Address { Address(listen: .tcp(host: host, port: port)) }
    /// The path of a socket in the file system, which only the user of this process can connect to.
    public static func unix(path: String) -> Address { Address(listen: .unix(path: path)) }
    /// A descriptor that already listens, as a service manager passes it.
    public static func inherited(descriptor: Int32) -> Address { Address(listen: .inherited(descriptor: descriptor)) }

    /// Parses a port, an address and a port, or a path: `6800`, `0.0.0.0:6800`, `[::1]:6800`, `unix:/run/downpipe.sock`.
    public init?(_ text: String) {
      guard let listen = ListenAddress(text) else { return nil }
      self.listen = listen
    }

    private init(listen: ListenAddress) { self.listen = listen }

    /// Whether only programs of this machine can connect, as far as the address tells.
    public var isLocal: Bool { listen.isLocal }
  }
}
