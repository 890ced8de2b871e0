/// What each kind of failure means: a row for every error code and every HTTP status, those that are not
/// retried too, and each with its reason.
///
/// ```swift
/// let table = FailureTable.standard
///   .with(.httpStatus(404), .resume, because: "the mirror is still synchronizing")
/// Retry(.exponential(attempts: 8), table: table)
/// print(table)
/// ```
/// It is data and nothing else: ``Retry`` reads it.
public struct FailureTable: Sendable, Hashable {
  /// What to do: an open set, so that more may follow; ``Retry`` gives up for one it does not know.
  public struct Action: Sendable, Hashable, CustomStringConvertible {
    /// The word printed.
    public let rawValue: String
    /// Makes an action of one's own, for a policy of one's own.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    /// The word.
    public var description: String { rawValue }

    /// Go on from the bytes on disk.
    public static let resume = Action("resume")
    /// Throw the bytes away and begin again.
    public static let restart = Action("restart")
    /// Go on from the bytes on disk when there is a way to the server again.
    public static let waitForNetwork = Action("wait for network")
    /// Go on from the bytes on disk when there is room again.
    public static let waitForDisk = Action("wait for disk")
    /// Go on from the bytes on disk when their owner lets go of them.
    public static let waitForOwner = Action("wait for owner")
    /// Go on from the bytes on disk when other downloads have given descriptors back, with fewer at once.
    public static let waitForDescriptors = Action("wait for descriptors")
    /// Have the link renewed, then go on from the bytes on disk. Without a ``LinkRefresher``, the same as ``giveUp``.
    public static let refresh = Action("refresh")
    /// Report the failure.
    public static let giveUp = Action("give up")
  }

  /// Which failures a row is for.
  public enum Key: Sendable, Hashable, CustomStringConvertible {
    /// Errors with the code. Where the code is `.httpStatus`, this is only for statuses without a row.
    case code(DownloadError.Code)
    /// Answers with exactly this status.
    case httpStatus(Int)
    /// Answers with any status of a class that has no row of its own: `5` for 500 to 599.
    case httpStatusClass(Int)
    /// Everything without a row.
    case other

    /// `network`, `HTTP 404`, `HTTP 5xx`, `other`.
    public var description: String {
      switch self {
      case .code(let code): code.rawValue
      case .httpStatus(let status): "HTTP \(status)"
      case .httpStatusClass(let hundreds): "HTTP \(hundreds)xx"
      case .other: "other"
      }
    }
  }

  /// One row.
  public struct Row: Sendable, Hashable {
    /// Which failures it is for.
    public var key: Key
    /// What to do.
    public var action: Action
    /// Why, in a few words.
    public var reason: String
    /// Failures of this kind in a row after which it is over, where that is fewer than the policy allows.
    public var attempts: Int?
    /// How often and how long to wait after failures of this kind, in the place of what the policy says of all.
    public var backOff: BackOff?

    /// Makes a row.
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

  /// The rows, in the order in which they are printed; one for a key.
  public private(set) var rows: [Row] = []

  /// Makes a table. Of several rows with the same key the last one counts. Failures without a row are given up.
  public init(_ rows: [Row] = []) {
    for row in rows { set(row) }
  }

  /// The table with another row: it takes the place of the one with its key, or comes last.
  ///
  /// - Parameters:
  ///   - key: which failures.
  ///   - action: what to do.
  ///   - reason: why, in a few words.
  ///   - attempts: failures of this kind in a row after which it is over, if fewer than the policy allows.
  ///   - backOff: how often and how long to wait after failures of this kind, in the place of what the policy says of
  ///     all: `.constant(.seconds(10), attempts: 3)` for three attempts, 10 s apart.
  public func with(
    _ key: Key, _ action: Action, because reason: String, attempts: Int? = nil, backOff: BackOff? = nil
  ) -> FailureTable {
    var copy = self
    copy.set(Row(key, action, because: reason, attempts: attempts, backOff: backOff))
    return copy
  }

  /// The row for an error. An answer's status counts only where the status *is* the failure (code `.httpStatus`):
  /// its own row first, then that of its class, then that of the code. `other` comes last.
  public func row(for error: DownloadError) -> Row {
    if error.code == .httpStatus, let status = error.httpStatus {
      if let row = row(.httpStatus(status)) ?? row(.httpStatusClass(status / 100)) { return row }
    }
    return row(.code(error.code)) ?? row(.other)
      ?? Row(.other, .giveUp, because: "the table has no row for it")
  }

  /// The row with exactly this key.
  public func row(_ key: Key) -> Row? { rows.first { $0.key == key } }

  private mutating func set(_ row: Row) {
    if let index = rows.firstIndex(where: { $0.key == row.key }) {
      rows[index] = row
    } else {
      rows.append(row)
    }
  }
}

extension FailureTable: CustomStringConvertible {
  /// The table as text, a row a line: failure, action, reason.
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
  /// The text with blanks behind it, `width` characters wide or wider.
  package func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
