/// A table of actions: a row for every error code and every HTTP status, including those that are not retried, with the
/// reason.
///
/// ```swift
/// let table = FailureTable.standard
///   .with(.httpStatus(404), .resume, because: "the mirror is still synchronizing")
/// Retry(.exponential(attempts: 8), table: table)
/// print(table)
/// ```
/// The table is data only; ``Retry`` applies it.
public struct FailureTable: Sendable, Hashable {
  /// What to do about a failure. The set is open; ``Retry`` gives up for an action that it does not know.
  public struct Action: Sendable, Hashable, CustomStringConvertible {
    /// The printed text of the action.
    public let rawValue: String
    /// Creates an action for a custom retry policy.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    /// The text of the action.
    public var description: String { rawValue }

    /// Continue from the stored bytes.
    public static let resume = Action("resume")
    /// Discard the stored bytes and start again.
    public static let restart = Action("restart")
    /// Continue from the stored bytes when a gate reports that the network may be there again, or after the delay.
    public static let waitForNetwork = Action("wait for network")
    /// Continue from the stored bytes when there is space on the disk.
    public static let waitForDisk = Action("wait for disk")
    /// Continue from the stored bytes when their owner has released them.
    public static let waitForOwner = Action("wait for owner")
    /// Continue from the stored bytes when other downloads have released descriptors, with fewer downloads at once.
    public static let waitForDescriptors = Action("wait for descriptors")
    /// Renew the link, then continue from the stored bytes. Without a ``LinkRefresher`` this is the same as ``giveUp``.
    public static let refresh = Action("refresh")
    /// Let the download wait as it was, and let this machine pause.
    public static let giveBack = Action("give back")
    /// Fail the download.
    public static let giveUp = Action("give up")
  }

  /// The failures that a row applies to.
  public enum Key: Sendable, Hashable, CustomStringConvertible {
    /// Errors of the scope, with any code.
    case scope(DownloadError.Scope)
    /// Errors with the code. For the code `.httpStatus` the row applies only to statuses without a row.
    case code(DownloadError.Code)
    /// Replies with exactly this status.
    case httpStatus(Int)
    /// Replies with a status of this class that has no row of its own; `5` stands for 500 to 599.
    case httpStatusClass(Int)
    /// All failures without a row.
    case other

    /// The key as text: `fault of the machine`, `network`, `HTTP 404`, `HTTP 5xx`, `other`.
    public var description: String {
      switch self {
      case .scope(let scope): "fault of the \(scope.rawValue)"
      case .code(let code): code.rawValue
      case .httpStatus(let status): "HTTP \(status)"
      case .httpStatusClass(let hundreds): "HTTP \(hundreds)xx"
      case .other: "other"
      }
    }
  }

  /// A row of the table.
  public struct Row: Sendable, Hashable {
    /// The failures that the row applies to.
    public var key: Key
    /// What to do.
    public var action: Action
    /// Why, in a few words.
    public var reason: String
    /// The number of failures of this kind in a row after which the download fails, if lower than the policy's number;
    /// `nil` for the policy's.
    public var attempts: Int?
    /// The back-off for failures of this kind; `nil` for that of the policy.
    public var backOff: BackOff?

    /// Creates a row.
    public init(
      _ key: Key, _ action: Action, because reason: String, attempts: Int? = nil, backOff: BackOff? = nil
    ) {
      self.key = key
      self.action = action
      self.reason = reason
      self.attempts = attempts
      self.backOff = backOff
    }
  }

  /// The rows in the order in which they are printed. Each key has one row.
  public private(set) var rows: [Row] = []

  /// Creates a table. The last of several rows with the same key counts. Failures without a row fail the download.
  public init(_ rows: [Row] = []) {
    for row in rows { set(row) }
  }

  /// Returns the table with a row added. It replaces the row with the same key, or is added at the end.
  ///
  /// - Parameters:
  ///   - key: The failures that the row applies to.
  ///   - action: What to do.
  ///   - reason: Why, in a few words.
  ///   - attempts: The number of failures of this kind in a row after which the download fails, if lower than the
  ///     policy's number.
  ///   - backOff: The back-off for failures of this kind in place of the policy's, such as `.constant(.seconds(10),
  ///     attempts: 3)` for three attempts at intervals of 10 s.
  public func with(
    _ key: Key, _ action: Action, because reason: String, attempts: Int? = nil, backOff: BackOff? = nil
  ) -> FailureTable {
    var copy = self
    copy.set(Row(key, action, because: reason, attempts: attempts, backOff: backOff))
    return copy
  }

  /// Returns the table without the row for a key: such failures have the row that comes next.
  public func without(_ key: Key) -> FailureTable {
    var copy = self
    copy.rows.removeAll { $0.key == key }
    return copy
  }

  /// Returns the row for an error.
  ///
  /// The row of the error's scope comes first. For errors with the code `.httpStatus`, the row of the status follows, then
  /// that of its class, then that of the code. For other errors the status is ignored. The row `other` comes last.
  public func row(for error: DownloadError) -> Row {
    if let row = row(.scope(error.scope)) { return row }
    if error.code == .httpStatus, let status = error.httpStatus {
      if let row = row(.httpStatus(status)) ?? row(.httpStatusClass(status / 100)) { return row }
    }
    return row(.code(error.code)) ?? row(.other)
      ?? Row(.other, .giveUp, because: "the table has no row for it")
  }

  /// Returns the row with exactly this key; `nil` when there is none.
  public func row(_ key: Key) -> Row? { rows.first { $0.key == key } }

  private mutating func set(_ row: Row) {
    rows.set(row, by: \.key)
  }
}

extension FailureTable: CustomStringConvertible {
  /// The table as text, one row per line: failure, action, reason.
  public var description: String {
    let cells = rows.map { row in
      let limits = [row.attempts.map { "\($0) attempts at most" }, row.backOff?.description].compactMap(\.self)
      let limit = limits.isEmpty ? "" : " (\(limits.joined(separator: "; ")))"
      return (row.key.description, row.action.description, row.reason + limit)
    }
    let first = cells.map(\.0.count).max() ?? 0
    let second = cells.map(\.1.count).max() ?? 0
    return cells.map { key, action, reason in
      key.padded(to: first) + "  " + action.padded(to: second) + "  " + reason
    }.joined(separator: "\n")
  }
}

extension String {
  /// Returns the text padded with blanks to at least `width` characters.
  package func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
