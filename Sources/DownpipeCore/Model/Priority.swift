/// The priority of a download. A higher priority goes first.
public struct Priority: Hashable, Sendable, Codable, Comparable, ExpressibleByIntegerLiteral {
  /// The level, from -32,768 to 32,767; 0 is normal.
  public let rawValue: Int16

  /// A priority below the default.
  public static let low: Priority = -100
  /// The default priority.
  public static let normal: Priority = 0
  /// A priority above the default.
  public static let high: Priority = 100

  /// Creates a priority of any level.
  public init(_ rawValue: Int16) { self.rawValue = rawValue }

  /// Creates a priority from a literal.
  public init(integerLiteral value: Int16) { self.init(value) }

  /// Orders priorities by level.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The reason why a file is wanted. Gates and policies decide by it.
public struct Intent: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The text stored in the ledger.
  public let rawValue: String

  /// The user has requested the file and waits for it. The default intent of a request.
  public static let userInitiated = Intent("userInitiated")
  /// The user will probably want the file.
  public static let prefetch = Intent("prefetch")
  /// The download must not be noticeable.
  public static let silent = Intent("silent")

  /// Creates an intent for an app.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// The text of the intent.
  public var description: String { rawValue }
}
