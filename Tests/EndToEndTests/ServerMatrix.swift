import Downpipe
import DownpipeTesting
import Foundation

/// The cells of the server matrix: bytes on disk × second reply × relation of the validators × change of the file
/// meanwhile × kind of validator.
enum ServerMatrix {
  /// The bytes on disk after the first reply, for a file of 100 units.
  enum OnDisk: String, CaseIterable, Sendable {
    /// The first body ended before its first byte.
    case nothing
    /// 40 units, and the total is known.
    case some
    /// All 100 units, and the total is not known.
    case all
    /// 120 units: the file has shrunk since, unless it became longer than that.
    case more
  }

  /// The second reply.
  enum Answer: String, CaseIterable, Sendable {
    case whole200, right206, wrongStart206, wrongEnd206
    /// It ends within the bytes on disk.
    case shortEnd206
    /// It ends after them, and before the end of the file.
    case part206
    case wrongTotal206, multipart206, unreadable206, encoded206, notModified304, notFound404, precondition412
    case unsatisfiable416, unsatisfiable416WithoutTotal, unavailable503
  }

  /// How the validator of the first reply relates to that of all later ones.
  enum Relation: String, CaseIterable, Sendable { case sameStrong, sameWeak, changed, absent }

  /// How the file changes between the first reply and the second.
  enum Fate: String, CaseIterable, Sendable {
    /// The bytes stay the same, as far as the file goes.
    case same
    /// Each byte is another, and the length stays the same.
    case otherBytes
    /// The bytes are others, and more.
    case longer
    /// The bytes are others, and fewer.
    case shorter
  }

  enum Kind: String, CaseIterable, Sendable { case tag, date }

  struct Cell: Sendable, Hashable {
    var onDisk: OnDisk
    var answer: Answer
    var relation: Relation
    var fate: Fate
    var kind = Kind.tag
    /// The number of bytes in a unit.
    var unit: Int64 = 1

    var id: DownloadID {
      DownloadID("\(onDisk)-\(answer)-\(relation)-\(fate)-\(kind)-\(unit)".lowercased())
    }
    var path: String { "/\(id)" }
  }

  /// The cells of a row. A strong validator that stays while the bytes change is wrong, and must be noticed.
  static func cells(_ onDisk: OnDisk, _ answer: Answer, kinds: [Kind] = Kind.allCases, unit: Int64 = 1) -> [Cell] {
    var cells: [Cell] = []
    for kind in kinds {
      for relation in Relation.allCases where kind == .tag || relation != .absent {
        for fate in Fate.allCases {
          // That reply is about a longer file.
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
  /// The bytes on disk after the first reply.
  var have: Int64 {
    switch onDisk {
    case .nothing: 0
    case .some: 40 * unit
    case .all: 100 * unit
    case .more: 120 * unit
    }
  }

  /// The size in the first reply.
  var total: Int64? { onDisk == .nothing || onDisk == .some ? 100 * unit : nil }

  /// The size of the file since the second reply.
  var size: Int64 {
    if answer == .wrongTotal206 { return 200 * unit }
    return switch fate {
    case .same, .otherBytes: 100 * unit
    case .longer: 130 * unit
    case .shorter: 60 * unit
    }
  }

  /// The file of the first reply, longer than any reply needs.
  var before: [UInt8] { DownloadFixtures.pattern(size: Int(220 * unit)) }

  /// The file since the second reply, with bytes after its end for wrong replies. A changed file differs at every byte,
  /// so that a mix of both is neither.
  var beyond: [UInt8] { fate == .same ? before : before.map { ~$0 } }

  /// The file since the second reply: the expected result.
  var now: [UInt8] { Array(beyond[..<Int(size)]) }

  /// Whether the bytes on disk are the first ones of the file.
  var fits: Bool { fate == .same }

  /// Whether the validator of the first reply may be sent as `If-Range`.
  var isStrong: Bool { relation == .sameStrong || relation == .changed }

  // MARK: Validators

  private static let date = Date(timeIntervalSince1970: 1_700_000_000)
  /// A file that was changed a moment before may change again within the same second.
  private var modified: Date { Self.date.addingTimeInterval(isStrong ? -86_400 : -5) }

  /// The value of `If-Range` for the validator of the first reply; `nil` for a weak one.
  var ifRange: String? {
    guard isStrong else { return nil }
    return kind == .tag ? "\"v1\"" : HTTPDate.string(from: modified)
  }

  /// The header fields of the validator in the first reply, or in all later ones.
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

  // MARK: Replies

  /// The first reply, whose body is cut.
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

  /// The second reply, byte by byte.
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

  /// Every later reply: that of a good server.
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
