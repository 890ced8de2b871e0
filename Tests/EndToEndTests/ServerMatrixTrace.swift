import Downpipe

/// The events and requests of a correct client, from the first reply of a cell to the finished file.
struct ServerMatrixTrace: Equatable, Sendable {
  /// An event with an error.
  enum Note: Equatable, Sendable {
    case refused(DownloadError.Code)
    case restarted(DownloadError.Code)
    case failed(DownloadError.Code, Int?)
  }

  /// A request, and the bytes on disk at that moment.
  struct Asked: Equatable, Sendable {
    var range: String?
    var ifRange: String?
    var onDisk: Int64
  }

  var notes: [Note] = []
  var asked: [Asked] = []
}

/// A correct client for one cell: it predicts what has to happen, and downloads nothing.
struct ServerMatrixClient {
  /// Which bytes on disk are requested again and compared.
  enum Policy: Equatable, Sendable {
    /// The last bytes, this many.
    case overlap(Int64)
    /// The last 64 KiB with a strong validator, all without one.
    case strict
  }

  private let cell: ServerMatrix.Cell
  private let policy: Policy
  private var have: Int64 = 0
  /// Those that a restart has given up are there until the next attempt has ended.
  private var onDisk: Int64 = 0
  private var total: Int64?
  private var believesRanges = true
  private(set) var trace = ServerMatrixTrace()
  /// Whether the bytes of the first reply become the file: the server says that the file has not changed and has this
  /// length, and sends nothing to compare.
  private(set) var keepsWhatIsOnDisk = false

  init(_ cell: ServerMatrix.Cell, _ policy: Policy) {
    self.cell = cell
    self.policy = policy
    ask()
    trace.notes.append(.failed(.network, nil))
    (have, onDisk) = (cell.have, cell.have)
    total = cell.total
    ask()
    switch start == nil ? cell.outcomeOfWhole : cell.outcome {
    case .takes: break
    case .isComplete: keepsWhatIsOnDisk = true
    case .compares: if start == nil { compareWhole() } else { compare() }
    case .ignored:
      trace.notes.append(.refused(.rangeIgnored))
      if cell.fits { break }
      refuse(.contentChanged)
    case .replaces: trace.notes.append(.restarted(.contentChanged))
    case .takesPart:
      compare()
      if cell.fits {
        (have, onDisk) = (have + 5 * cell.unit, have + 5 * cell.unit)
        continueWithAGoodServer()
      }
    case .refuses(let code): refuse(code)
    case .fails(let code):
      trace.notes.append(.failed(code, status(with: code)))
      if code == .contentChanged { (have, total) = (0, nil) }
      continueWithAGoodServer()
    case nil: break
    }
  }

  private func status(with code: DownloadError.Code) -> Int? {
    switch cell.answer {
    case .notModified304: 304
    case .notFound404: 404
    case .precondition412: 412
    case .unsatisfiable416, .unsatisfiable416WithoutTotal: 416
    case .unavailable503: 503
    default: nil
    }
  }

  /// The first byte of the requested range; `nil` for the whole file.
  private var start: Int64? {
    guard have > 0, believesRanges else { return nil }
    let compared: Int64 =
      switch policy {
      case .overlap(let bytes): bytes
      case .strict: cell.isStrong ? 65_536 : have
      }
    return have > compared ? have - compared : nil
  }

  private mutating func ask() {
    trace.asked.append(
      .init(range: start.map { "bytes=\($0)-" }, ifRange: start == nil ? nil : cell.ifRange, onDisk: onDisk))
  }

  /// A range cannot be used: the whole file is requested in the same attempt.
  private mutating func refuse(_ code: DownloadError.Code) {
    trace.notes.append(.refused(code))
    believesRanges = false
    continueWithAGoodServer()
  }

  /// What the server sends contradicts the bytes on disk, which stay. The user restarts the download.
  private mutating func fail() {
    trace.notes.append(.failed(.contentChanged, nil))
    (have, total) = (0, nil)
    continueWithAGoodServer()
  }

  /// From here on, the server replies correctly.
  private mutating func continueWithAGoodServer() {
    let start = start
    ask()
    let hasOtherSize = cell.size < have || total.map { $0 != cell.size } ?? false
    if have == 0 {
      if hasOtherSize, cell.relation != .changed { fail() }
      return
    }
    guard let start, cell.relation != .changed else { return takeWhole(hasOtherSize, instead: start != nil) }
    if start >= cell.size { return refuse(.rangeNotSatisfiable) }
    if hasOtherSize { return refuse(.contentChanged) }
    compare()
  }

  /// A whole body, with bytes on disk.
  private mutating func takeWhole(_ hasOtherSize: Bool, instead ofARange: Bool) {
    if cell.relation == .changed, cell.size >= have || cell.kind == .date {
      if ofARange { refuse(.contentChanged) } else { trace.notes.append(.restarted(.contentChanged)) }
    } else if cell.relation == .changed || hasOtherSize {
      if ofARange { refuse(.contentChanged) } else { fail() }
    } else if cell.relation == .sameStrong, cell.size == have {
      keepsWhatIsOnDisk = true
    } else {
      if ofARange { trace.notes.append(.refused(.rangeIgnored)) }
      if !cell.fits, ofARange { refuse(.contentChanged) } else { compareWhole() }
    }
  }

  /// A whole body is compared with the bytes on disk.
  private mutating func compareWhole() { if !cell.fits { fail() } }

  /// A part is compared with the bytes on disk.
  private mutating func compare() { if !cell.fits { refuse(.contentChanged) } }
}
