public import DownpipeCore

/// A segment policy that fetches large files over several connections at once.
///
/// ```swift
/// Segmented()                                                 // as many as pay, up to 8, for files from 32 MiB
/// Segmented(connections: .automatic(upTo: 4))
/// Segmented(connections: 8, minimumSize: 256 << 20)           // always 8, for files from 256 MiB
/// ```
/// With `.automatic`, a file begins with one connection. While the file arrives, the policy measures whether more
/// connections bring more bytes: it doubles them as long as the throughput rises with them, keeps as many as the
/// throughput needs, and asks again later and when the throughput falls. So a server that limits the speed of each
/// connection is asked for several, and a line that one connection fills gets no more. Nothing is tried when the rest
/// of the file takes less than two seconds anyway.
///
/// Refused connections (429, 503) and lost ones lower the number at once, with a fixed number too; it rises again by one
/// after 5 seconds, and after up to a minute when that is refused again. Limits per host, such as those of ``Limits``,
/// apply to all connections of all downloads together.
///
/// The engine uses segments only if the server has a strong validator for the file and serves ranges of it; a file from
/// another server comes over one connection. With mirrors, the connections are spread over all of them.
public struct Segmented: SegmentPolicy, Hashable {
  /// The number of connections for one file.
  public let connections: Connections
  /// The size in bytes from which a file is fetched over several connections.
  public let minimumSize: Int64

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - connections: The number of connections for one file, `.automatic` or a number.
  ///   - minimumSize: The size in bytes from which a file is fetched over several connections; at least 1.
  public init(connections: Connections = .automatic, minimumSize: Int64 = 32 << 20) {
    self.connections = connections
    self.minimumSize = max(1, minimumSize)
  }

  /// The settings as text.
  public var summary: String {
    let number = connections.isAutomatic ? "up to \(connections.maximum)" : "\(connections.maximum)"
    let noun = connections.maximum == 1 ? "connection" : "connections"
    let size = minimumSize > 1 ? ", for files from \(ByteFormat.binary.format(minimumSize))" : ""
    return "\(number) \(noun)\(size)"
  }

  /// Returns a session for a file that is large enough.
  public func start(size: Int64, of transfer: TransferContext) -> (any SegmentSession)? {
    guard size >= minimumSize, connections.maximum > 1 else { return nil }
    return SegmentedSession(connections)
  }

  /// A number of connections, found by measuring or fixed.
  ///
  /// An integer literal is a fixed number, so that `Segmented(connections: 8)` reads as it should.
  public struct Connections: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The most connections for one file, from 1 to 32.
    public let maximum: Int
    /// Whether the number is found by measuring; otherwise it is ``maximum``.
    public let isAutomatic: Bool

    /// As many connections as raise the throughput, up to 8.
    public static let automatic = automatic(upTo: 8)

    /// As many connections as raise the throughput.
    ///
    /// - Parameter maximum: The most connections, from 1 to 32; other numbers are moved into this range.
    public static func automatic(upTo maximum: Int) -> Connections { .init(maximum, isAutomatic: true) }

    /// A fixed number of connections.
    ///
    /// - Parameter count: The number, from 1 to 32; other numbers are moved into this range.
    public static func exactly(_ count: Int) -> Connections { .init(count, isAutomatic: false) }

    /// Creates a fixed number of connections.
    public init(integerLiteral count: Int) { self.init(count, isAutomatic: false) }

    private init(_ count: Int, isAutomatic: Bool) {
      maximum = min(max(1, count), 32)
      self.isAutomatic = isAutomatic
    }
  }
}
