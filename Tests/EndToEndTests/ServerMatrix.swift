import Downpipe
import DownpipeTesting
import Foundation

/// The cells of the server matrix: what is on disk × what the server answers × how the validators relate × what became
/// of the file meanwhile × which kind of validator there is.
enum ServerMatrix {
  /// What the first answer has left on disk, of a file of 100 units.
  enum OnDisk: String, CaseIterable, Sendable {
    /// The first body ended before its first byte.
    case nothing
    /// 40 units, and the total is known.
    case some
    /// 100 units, which are all, but nobody said so.
    case all
    /// 120 units; the file has shrunk since, unless it became longer than that.
    case more
  }

  /// The second answer.
  enum Answer: String, CaseIterable, Sendable {
    case whole200, right206, wrongStart206, wrongEnd206
    /// It ends within the bytes that are on disk.
    case shortEnd206
    /// It ends behind them, and before the file does.
    case part206
    case wrongTotal206, multipart206, unreadable206, encoded206, notModified304, notFound404, precondition412
    case unsatisfiable416, unsatisfiable416WithoutTotal, unavailable503
  }

  /// How the validator of the first answer relates to that of the second and of all that follow.
  enum Relation: String, CaseIterable, Sendable { case sameStrong, sameWeak, changed, absent }

  /// What became of the file between the first and the second answer.
  enum Fate: String, CaseIterable, Sendable {
    /// Its bytes are what they were, as far as it goes.
    case same
    /// Another byte at each position, and the length it had.
    case otherBytes
    /// Other bytes, and longer.
    case longer
    /// Other bytes, and shorter.
    case shorter
  }

  enum Kind: String, CaseIterable, Sendable { case tag, date }

  struct Cell: Sendable, Hashable {
    var onDisk: OnDisk
    var answer: Answer
    var relation: Relation
    var fate: Fate
    var kind = Kind.tag
    /// The bytes in a unit.
    var unit: Int64 = 1

    var id: DownloadID {
      DownloadID("\(onDisk)-\(answer)-\(relation)-\(fate)-\(kind)-\(unit)".lowercased())
    }
    var path: String { "/\(id)" }
  }

  /// The cells of a row. A strong validator that stays although the bytes change is a lie, and is found out as well.
  static func cells(_ onDisk: OnDisk, _ answer: Answer, kinds: [Kind] = Kind.allCases, unit: Int64 = 1) -> [Cell] {
    var cells: [Cell] = []
    for kind in kinds {
      for relation in Relation.allCases where kind == .tag || relation != .absent {
        for fate in Fate.allCases {
          // That answer is about a longer file already.
          if answer == .wrongTotal206, fate == .longer || fate == .shorter { continue }
          cells.append(
            Cell(onDisk: onDisk, answer: answer, relation: relation, fate: fate, kind: kind, unit: unit))
        }
      }
    }
    return cells
  }
}

extension ServerMatrix.Cell {
  /// The bytes on disk after the first answer.
  var have: Int64 {
    switch onDisk {
    case .nothing: 0
    case .some: 40 * unit
    case .all: 100 * unit
    case .more: 120 * unit
    }
  }

  /// The size that the first answer gave.
  var total: Int64? { onDisk == .nothing || onDisk == .some ? 100 * unit : nil }

  /// The size of the file since the second answer.
  var size: Int64 {
    if answer == .wrongTotal206 { return 200 * unit }
    return switch fate {
    case .same, .otherBytes: 100 * unit
    case .longer: 130 * unit
    case .shorter: 70 * unit
    }
  }

  /// The file of the first answer, longer than any answer needs.
  var before: [UInt8] { DownloadFixtures.pattern(size: Int(220 * unit)) }

  /// The file since the second answer, with what a wrong answer may find behind its end. Where it is another file it
  /// differs at every byte, so that no mix of the two can be taken for either.
  var beyond: [UInt8] { fate == .same ? before : before.map { ~$0 } }

  /// The file since the second answer: what has to be there in the end.
  var now: [UInt8] { Array(beyond[..<Int(size)]) }

  /// Whether the bytes on disk are the file's first ones.
  var fits: Bool { fate == .same }

  /// Whether the first answer's validator may be sent as `If-Range`.
  var isStrong: Bool { relation == .sameStrong || relation == .changed }

  // MARK: Validators

  private static let date = Date(timeIntervalSince1970: 1_700_000_000)
  /// A file that was changed a moment before may change again within the same second.
  private var modified: Date { Self.date.addingTimeInterval(isStrong ? -86_400 : -5) }

  /// The value of `If-Range` that goes with the first answer's validator, where it is strong.
  var ifRange: String? {
    guard isStrong else { return nil }
    return kind == .tag ? "\"v1\"" : HTTPDate.string(from: modified)
  }

  /// The validator's header fields: of the first answer, or of all that follow.
  func validator(first: Bool) -> HeaderFields {
    let isNew = relation == .changed && !first
    switch (relation, kind) {
    case (.absent, _): return []
    case (.sameWeak, .tag): return ["ETag": "W/\"v1\""]
    case (_, .tag): return ["ETag": isNew ? "\"v2\"" : "\"v1\""]
    case (_, .date):
      return [
        "Date": HTTPDate.string(from: Self.date),
        "Last-Modified": HTTPDate.string(from: modified.addingTimeInterval(isNew ? 3600 : 0)),
      ]
    }
  }

  // MARK: Answers

  /// The first answer: its body breaks off.
  var first: ScriptedReply {
    var headers = validator(first: true)
    if let total {
      headers["Content-Length"] = String(total)
      return ScriptedReply([.head(200, headers), .send(Array(before[..<Int(have)])), .close])
    }
    headers["Transfer-Encoding"] = "chunked"
    return ScriptedReply([
      .head(200, headers), .send(String(have, radix: 16) + "\r\n"), .send(Array(before[..<Int(have)])), .close,
    ])
  }

  /// The second answer, byte by byte.
  func second(to request: ScriptedRequest) -> ScriptedReply {
    let start = request.range?.start ?? 0
    var headers = validator(first: false)
    func range(_ range: Range<Int64>, of total: Int64) -> ScriptedReply {
      headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
      return ScriptedReply(206, headers, body: .bytes(Array(beyond[clamped(range)])))
    }
    switch answer {
    case .whole200: return ScriptedReply(200, headers, body: .bytes(now))
    case .right206, .wrongTotal206: return range(start..<max(size, start + 1), of: size)
    case .wrongStart206: return range(start + 1..<max(size, start + 2), of: max(size, start + 2))
    case .wrongEnd206: return range(start..<max(size, start) + 1, of: size)
    case .shortEnd206: return range(start..<max(min(start + 5 * unit, size), start + 1), of: size)
    case .part206: return range(start..<max(min(start + 15 * unit, size), start + 1), of: size)
    case .multipart206:
      headers["Content-Type"] = "multipart/byteranges; boundary=part"
      let text = "--part\r\nContent-Range: bytes \(start)-\(start)/\(size)\r\n\r\nx\r\n--part--\r\n"
      return ScriptedReply(206, headers, body: .text(text))
    case .unreadable206:
      headers["Content-Range"] = "bytes 9-3/2"
      return ScriptedReply(206, headers, body: .bytes(Array(beyond[clamped(start..<max(start, size))])))
    case .encoded206:
      headers["Content-Encoding"] = "gzip"
      return range(start..<max(size, start + 1), of: size)
    case .notModified304: return ScriptedReply([.head(304, headers)])
    case .notFound404: return ScriptedReply(404, headers, body: .text("There is no such file."))
    case .precondition412: return ScriptedReply(412, headers, body: .text("It is not so."))
    case .unsatisfiable416:
      headers["Content-Range"] = "bytes */\(size)"
      return ScriptedReply(416, headers, body: .text("There is nothing."))
    case .unsatisfiable416WithoutTotal: return ScriptedReply(416, headers, body: .text("There is nothing."))
    case .unavailable503: return ScriptedReply(503, headers, body: .text("Later."))
    }
  }

  /// Every later answer, which is a good server's.
  func later(to request: ScriptedRequest) -> ScriptedReply {
    let fields = validator(first: false)
    return .file(
      .bytes(now), etag: fields["ETag"], lastModified: fields["Last-Modified"].flatMap(HTTPDate.date(from:)),
      date: fields["Date"].flatMap(HTTPDate.date(from:)), for: request)
  }

  private func clamped(_ range: Range<Int64>) -> Range<Int> {
    let range = range.clamped(to: 0..<Int64(beyond.count))
    return Int(range.lowerBound)..<Int(range.upperBound)
  }
}

extension ServerMatrix.Cell: CustomStringConvertible {
  var description: String { "\(onDisk) × \(answer) × \(relation) × \(fate) × \(kind)" }
}
