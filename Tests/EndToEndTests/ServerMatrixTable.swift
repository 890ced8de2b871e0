import Downpipe

/// What a correct client does with the second reply, written by hand: the tests compare the engine with this table and
/// never use `ResumePlan`.
///
/// Over a socket two rows differ from the table of `ResumePlan`: a range that ends after its own total is invalid (RFC
/// 9110 §14.4), and the parser of the header refuses it.
extension ServerMatrix {
  enum Outcome: Equatable, Sendable {
    /// The body is the whole file.
    case takes
    /// The bytes on disk are the whole file.
    case isComplete
    /// The body is compared with the bytes on disk, and its rest is appended.
    case compares
    /// The same with a whole body, after `rangeIgnored`.
    case ignored
    /// The body is another version of the file, which is fetched beside the bytes on disk.
    case replaces
    /// The body is compared with the bytes on disk, the 5 units after them are appended, and the server is asked again.
    case takesPart
    /// The bytes on disk stay, and the whole file is requested at once. A whole body fails the attempt.
    case refuses(DownloadError.Code)
    /// The attempt fails.
    case fails(DownloadError.Code)
  }

  /// The outcomes for sameStrong, sameWeak, changed and absent, for a file of the same size.
  static let table: [OnDisk: [Answer: [Outcome]]] = [
    .nothing: [
      // A 206 from the first byte to the last is the whole file.
      .whole200: every(.takes), .right206: every(.takes), .wrongStart206: every(.fails(.wrongRange)),
      .wrongEnd206: every(.fails(.unreadableRange)), .shortEnd206: every(.fails(.wrongRange)),
      .part206: every(.fails(.wrongRange)), .wrongTotal206: resizedWhole,
      .multipart206: every(.fails(.multipartRange)), .unreadable206: every(.fails(.unreadableRange)),
      .encoded206: every(.fails(.wrongRange)),
      .notModified304: status, .notFound404: status, .precondition412: status, .unsatisfiable416: status,
      .unsatisfiable416WithoutTotal: status, .unavailable503: status,
    ],
    .some: [
      .whole200: replacing,
      .right206: compared, .wrongStart206: every(.refuses(.wrongRange)),
      .wrongEnd206: every(.refuses(.unreadableRange)), .shortEnd206: tooShort, .part206: part,
      .wrongTotal206: every(.refuses(.contentChanged)), .multipart206: every(.refuses(.multipartRange)),
      .unreadable206: every(.refuses(.unreadableRange)), .encoded206: every(.refuses(.wrongContentCoding)),
      .notModified304: status, .notFound404: refused, .precondition412: refused, .unsatisfiable416: unsatisfiable,
      .unsatisfiable416WithoutTotal: every(.refuses(.rangeNotSatisfiable)), .unavailable503: refused,
    ],
    .all: [
      .whole200: replacing,
      .right206: compared, .wrongStart206: every(.refuses(.wrongRange)),
      .wrongEnd206: every(.refuses(.unreadableRange)), .shortEnd206: tooShort,
      // No bytes are left after the compared ones: this is the right range.
      .part206: compared, .wrongTotal206: compared,
      .multipart206: every(.refuses(.multipartRange)), .unreadable206: every(.refuses(.unreadableRange)),
      .encoded206: every(.refuses(.wrongContentCoding)),
      .notModified304: status, .notFound404: refused, .precondition412: refused,
      .unsatisfiable416: [
        .isComplete, .refuses(.rangeNotSatisfiable), .refuses(.contentChanged), .refuses(.rangeNotSatisfiable),
      ],
      .unsatisfiable416WithoutTotal: every(.refuses(.rangeNotSatisfiable)), .unavailable503: refused,
    ],
    .more: [
      .whole200: every(.refuses(.contentChanged)),
      // The file ends before the requested range: no 206 can say that.
      .right206: every(.refuses(.unreadableRange)), .wrongStart206: every(.refuses(.wrongRange)),
      .wrongEnd206: every(.refuses(.unreadableRange)), .shortEnd206: every(.refuses(.unreadableRange)),
      .part206: every(.refuses(.unreadableRange)), .wrongTotal206: compared,
      .multipart206: every(.refuses(.multipartRange)), .unreadable206: every(.refuses(.unreadableRange)),
      .encoded206: every(.refuses(.unreadableRange)),
      .notModified304: status, .notFound404: refused, .precondition412: refused, .unsatisfiable416: unsatisfiable,
      .unsatisfiable416WithoutTotal: every(.refuses(.rangeNotSatisfiable)), .unavailable503: refused,
    ],
  ]

  /// The differences for a longer file.
  static let longer: [OnDisk: [Answer: [Outcome]]] = [
    .nothing: [.whole200: resizedWhole, .right206: resizedWhole],
    .some: resized,
    .all: [
      .whole200: replacing,
      .part206: part, .unsatisfiable416: unsatisfiable,
    ],
    .more: [
      .whole200: replacing,
      .right206: compared, .shortEnd206: tooShort, .part206: part,
      .encoded206: every(.refuses(.wrongContentCoding)),
    ],
  ]

  /// The differences for a shorter file.
  static let shorter: [OnDisk: [Answer: [Outcome]]] = [
    .nothing: [.whole200: resizedWhole, .right206: resizedWhole],
    .some: resized,
    .all: [
      .whole200: every(.refuses(.contentChanged)),
      .right206: every(.refuses(.unreadableRange)), .shortEnd206: every(.refuses(.unreadableRange)),
      .part206: every(.refuses(.unreadableRange)), .encoded206: every(.refuses(.unreadableRange)),
      .unsatisfiable416: unsatisfiable,
    ],
  ]

  /// No bytes are on disk, but the head of the first reply has told the size.
  private static let resizedWhole: [Outcome] = [
    .fails(.contentChanged), .fails(.contentChanged), .takes, .fails(.contentChanged),
  ]

  /// A 200 may be the range that was requested: another version begins with another request.
  private static let replacing: [Outcome] = [.ignored, .ignored, .refuses(.contentChanged), .ignored]

  private static let resized: [Answer: [Outcome]] = [
    .whole200: every(.refuses(.contentChanged)),
    .right206: every(.refuses(.contentChanged)), .shortEnd206: every(.refuses(.contentChanged)),
    .part206: every(.refuses(.contentChanged)),
  ]

  /// A strong validator does not replace the comparison: some servers keep it while the file changes.
  private static let compared: [Outcome] = [.compares, .compares, .refuses(.contentChanged), .compares]
  private static let part: [Outcome] = [.takesPart, .takesPart, .refuses(.contentChanged), .takesPart]
  private static let tooShort: [Outcome] = [
    .refuses(.wrongRangeEnd), .refuses(.wrongRangeEnd), .refuses(.contentChanged), .refuses(.wrongRangeEnd),
  ]
  private static let status: [Outcome] = every(.fails(.httpStatus))
  /// A status that may be about the range alone.
  private static let refused: [Outcome] = every(.refuses(.rangeRefused))
  private static let unsatisfiable: [Outcome] = [
    .refuses(.rangeNotSatisfiable), .refuses(.rangeNotSatisfiable), .refuses(.contentChanged),
    .refuses(.rangeNotSatisfiable),
  ]

  private static func every(_ outcome: Outcome) -> [Outcome] { .init(repeating: outcome, count: 4) }
}

extension ServerMatrix.Cell {
  /// What a correct client does with the second reply.
  var outcome: ServerMatrix.Outcome? { outcome(answer, fate) }

  private func outcome(_ answer: ServerMatrix.Answer, _ fate: ServerMatrix.Fate) -> ServerMatrix.Outcome? {
    let special: [ServerMatrix.OnDisk: [ServerMatrix.Answer: [ServerMatrix.Outcome]]] =
      switch fate {
      case .same, .otherBytes: [:]
      case .longer: ServerMatrix.longer
      case .shorter: ServerMatrix.shorter
      }
    let row = special[onDisk]?[answer] ?? ServerMatrix.table[onDisk]?[answer]
    return zip(ServerMatrix.Relation.allCases, row ?? []).first { $0.0 == relation }?.1
  }

  /// The same for a request of the whole file.
  var outcomeOfWhole: ServerMatrix.Outcome? {
    if onDisk == .nothing { return outcome }
    switch answer {
    case .whole200, .right206, .wrongTotal206:
      // A 206 from the first byte to the last is the whole file.
      let size = answer == .wrongTotal206 ? 200 * unit : self.size
      let hasOtherSize = size < have || total.map { $0 != size } ?? false
      switch relation {
      // A shorter file needs a later date.
      case .changed: return size >= have || kind == .date ? .replaces : .fails(.contentChanged)
      case .sameStrong, .sameWeak, .absent:
        if hasOtherSize { return .fails(.contentChanged) }
        return relation == .sameStrong && size == have ? .isComplete : .compares
      }
    default: break
    }
    // The request had no range, so the range of the reply is neither right nor wrong.
    let row = ServerMatrix.table[.nothing]?[answer]
    guard case .fails(let code) = row?.first else { return nil }
    return code == .httpStatus ? .fails(code) : .refuses(code)
  }
}
