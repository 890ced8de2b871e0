public import DownpipeCore

/// A server of a simulated world, with its files and its faults.
///
/// ```swift
/// var server = SimulatedServer(host: "cdn.example", files: [SimulatedFile(path: "/film", size: 10 << 20)])
/// server.bandwidth = 1 << 20
/// server.faults[.cut] = 0.2          // every fifth body ends early
/// ```
public struct SimulatedServer: Sendable, Hashable {
  /// The host of its URLs.
  public var host: String
  /// The files, by path.
  public var files: [SimulatedFile]
  /// The time until a reply begins; chosen anew for each request.
  public var latency: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(80)
  /// The bytes that each connection receives in a second; `nil` for no limit.
  public var bandwidth: Int64? = 1 << 20
  /// The most bodies that it sends at once; further requests get the status 503. `nil` for no limit.
  public var maximumConnections: Int?
  /// The probability of each fault, for each request.
  public var faults: [ServerFault: Double] = [:]

  /// Creates a server without faults.
  public init(host: String, files: [SimulatedFile] = []) {
    self.host = host
    self.files = files
  }
}

/// A file of a ``SimulatedServer``. Its bytes differ from those of all other files and versions.
public struct SimulatedFile: Sendable, Hashable {
  /// What a server tells about the version of a file.
  public enum Validation: String, Sendable, Hashable, CaseIterable {
    /// A strong entity tag.
    case strong
    /// A weak entity tag.
    case weak
    /// A modification date in whole seconds.
    case date
    /// A strong entity tag that stays the same when the file changes, against RFC 9110 §8.8.1.
    case lying
    /// Nothing.
    case none
  }

  /// The path in its URLs, which begins with a slash.
  public var path: String
  /// The size of the first version in bytes; later ones are somewhat larger or smaller.
  public var size: Int64
  /// What the server tells about the version.
  public var validation: Validation
  /// The media type of the replies.
  public var mediaType = "video/mp4"
  /// Whether replies have the length of the file.
  public var announcesLength = true
  /// Whether the server serves ranges.
  public var servesRanges = true
  /// The host and path of another server's file of which this is a copy, such as `origin.example/film`; `nil` for a file
  /// of its own. When the original is replaced, so is the copy.
  public var copyOf: String?

  /// Creates a file.
  public init(path: String, size: Int64, validation: Validation = .strong, copyOf: String? = nil) {
    self.path = path
    self.size = size
    self.validation = validation
    self.copyOf = copyOf
  }
}

/// What a ``SimulatedServer`` does wrong.
public enum ServerFault: String, Sendable, Hashable, CaseIterable, Comparable {
  /// The connection is refused.
  case refuse
  /// The connection is reset before a reply.
  case reset
  /// The body ends early, with an error of the connection.
  case cut
  /// The body ends early, without an error.
  case truncate
  /// The body falls silent for ten minutes.
  case stall
  /// The range begins elsewhere than requested.
  case wrongRange
  /// The total of the range is wrong.
  case wrongTotal
  /// A request for a range is answered with the whole file.
  case ignoredRange
  /// A request for a range is answered with the status 416.
  case refusedRange
  /// The status 429, with `Retry-After`.
  case tooManyRequests
  /// A status from 500 to 504.
  case serverError
  /// The status 404, as from a server of a group that has not got the file yet.
  case notFound
  /// The status 200 with a log-in page.
  case logInPage
  /// The status 200 with a few bytes of text, JSON or HTML, or with none, as from a link that has expired; some with a strong
  /// entity tag, or with that of the file. Requests for a file of which nothing is known do not have the fault: it would be
  /// the file for them.
  case expiredLink
  /// A request for a range is answered with that range and the status 200.
  case rangeAsWhole
  /// The status 200 with the validator of the file and a few bytes of its media type. Requests for a file of which no bytes
  /// are on disk do not have the fault.
  case lyingSize
  /// A redirect to another host, which has the same file.
  case redirect
  /// The file is replaced by another version before the reply.
  case swappedFile
  /// The bytes are those of another file, in a reply that says nothing of it.
  case otherBytes
  /// The bytes of a copy are not those of its original, in a reply that says nothing of it: a mirror with another file of
  /// the same size. Files that are no copies do not have the fault.
  case wrongCopy

  /// In order of their names.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// The faults that no client can notice without a digest. Only requests that expect one have them.
  public static let undetectable: Set<ServerFault> = [.otherBytes, .logInPage]
}
