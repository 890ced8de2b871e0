/// How much one download matters beside another; higher goes first.
public struct Priority: Hashable, Sendable, Codable, Comparable, ExpressibleByIntegerLiteral {
  /// The number behind the name.
  public let rawValue: Int16

  /// Behind everything else.
  public static let low: Priority = -100
  /// What a request has unless it says otherwise.
  public static let normal: Priority = 0
  /// Before the rest.
  public static let high: Priority = 100

  /// Makes a priority of any level.
  public init(_ rawValue: Int16) { self.rawValue = rawValue }

  /// Makes a priority in source text.
  public init(integerLiteral value: Int16) { self.init(value) }

  /// Orders by level.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Why somebody wants a file: gates and policies read it.
public struct Intent: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The word stored in the ledger.
  public let rawValue: String

  /// Somebody asked for it and waits.
  public static let userInitiated = Intent("userInitiated")
  /// It will probably be wanted.
  public static let prefetch = Intent("prefetch")
  /// Nobody should notice.
  public static let silent = Intent("silent")

  /// Makes an intent of one's own.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// The word.
  public var description: String { rawValue }
}
