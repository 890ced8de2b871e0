import DownpipeCore
import Foundation

/// A download as aria2 tells it: all values are strings, and what is not known is left out.
struct Aria2Status {
  let status: DownloadStatus
  let gid: GID
  /// The absolute path of the folder of all downloads.
  let directory: String

  /// The smallest piece of a file, and the most pieces, of which aria2's clients draw a bar.
  private static let smallestPiece: Int64 = 1 << 20
  private static let mostPieces: Int64 = 4096

  /// The length of a piece: a power of two.
  private var pieceLength: Int64 {
    var length = Self.smallestPiece
    // A server may state any size.
    while (total ?? 0) / length >= Self.mostPieces, length < 1 << 60 { length *= 2 }
    return length
  }

  private var pieceCount: Int64 {
    let (pieces, rest) = (total ?? 0).quotientAndRemainder(dividingBy: pieceLength)
    return pieces + (rest > 0 ? 1 : 0)
  }

  /// A bit for each piece, the highest of a byte first: whether all of its bytes are on disk; `nil` while there are none.
  private var bitfield: String? {
    guard let total, total > 0, completed > 0 else { return nil }
    // The ledger learns of what one connection brings a moment later.
    let isContiguous = status.storedRanges.byteCount == status.storedRanges.prefixLength
    let ranges = artifact == nil && !isContiguous ? status.storedRanges : ByteRangeSet(0..<min(completed, total))
    var bytes = [UInt8](repeating: 0, count: Int((pieceCount + 7) / 8))
    for range in ranges.ranges {
      let (whole, rest) = max(0, range.lowerBound).quotientAndRemainder(dividingBy: pieceLength)
      let first = whole + (rest > 0 ? 1 : 0)
      let end = range.upperBound >= total ? pieceCount : range.upperBound / pieceLength
      guard first < end else { continue }
      for piece in first..<end { bytes[Int(piece / 8)] |= 0x80 >> UInt8(piece % 8) }
    }
    return bytes.hexadecimal
  }

  /// - Parameter keys: The keys that a client wants; all when `nil` or empty.
  func json(_ keys: Set<String>?) -> JSONValue {
    var members: [String: JSONValue] = [:]
    func add(_ key: String, _ value: @autoclosure () -> JSONValue?) {
      if keys.map({ $0.isEmpty || $0.contains(key) }) ?? true { members[key] = value() }
    }
    add("gid", .string(gid.text))
    add("status", .string(name))
    add("totalLength", Self.number(total ?? 0))
    add("completedLength", Self.number(completed))
    add("uploadLength", "0")
    add("downloadSpeed", Self.number(speed))
    add("uploadSpeed", "0")
    add("connections", Self.number(status.state.phase == .transferring ? Int64(status.progress.connections) : 0))
    add("pieceLength", Self.number(pieceLength))
    add("numPieces", Self.number(pieceCount))
    add("bitfield", bitfield.map { .string($0) })
    add("dir", .string(folder))
    add("files", files)
    if status.state.phase.isFinal {
      add("errorCode", Self.number(Int64(code.rawValue)))
      add("errorMessage", .string(status.error?.message ?? ""))
    }
    add("downpipe", own)
    return .object(members)
  }

  var files: JSONValue {
    [
      [
        "index": "1", "path": .string(path), "length": Self.number(total ?? 0),
        "completedLength": Self.number(completed), "selected": "true", "uris": uris,
      ]
    ]
  }

  var uris: JSONValue {
    let used: JSONValue = status.state.phase.isActive ? "used" : "waiting"
    return .array(
      ([status.request.url] + status.request.mirrors).enumerated().map { index, url in
        ["uri": .string(url.absoluteString), "status": index == 0 ? used : "waiting"]
      })
  }

  var servers: JSONValue {
    [
      [
        "index": "1",
        "servers": [
          [
            "uri": .string(status.request.url.absoluteString), "currentUri": .string(status.request.url.absoluteString),
            "downloadSpeed": Self.number(speed),
          ]
        ],
      ]
    ]
  }

  /// What aria2 has no key for: the reason to wait, the step that works on the file, the priority.
  private var own: JSONValue {
    var members: [String: JSONValue] = ["priority": .integer(Int64(status.request.priority.rawValue))]
    switch status.state {
    case .waiting(let reason): members["reason"] = .string(reason.description)
    case .processing(let step): members["step"] = .string(step)
    default: break
    }
    if let error = status.error {
      members["error"] = ["code": .string(error.code.rawValue), "message": .string(error.message)]
    }
    return .object(members)
  }

  private var name: String {
    switch status.state {
    case .waiting: "waiting"
    case .transferring, .processing: "active"
    case .paused: "paused"
    case .finished: "complete"
    case .failed: "error"
    case .cancelled: "removed"
    }
  }

  private var code: Aria2ErrorCode {
    switch status.state {
    case .failed(let error): Aria2ErrorCode(error)
    case .cancelled: .removed
    default: .none
    }
  }

  private var total: Int64? { artifact?.size.bytes ?? status.progress.total.bytes }
  private var completed: Int64 { artifact?.size.bytes ?? status.progress.received }
  private var artifact: Artifact? { if case .finished(let artifact) = status.state { artifact } else { nil } }

  private var speed: Int64 {
    guard status.state.phase == .transferring else { return 0 }
    return status.progress.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) } ?? 0
  }

  private var folder: String {
    guard let below = status.request.destination.directory else { return directory }
    return below.hasPrefix("/") ? below : directory + "/" + below
  }

  /// The path of the file, as far as its name is known; empty otherwise.
  private var path: String { artifact?.path ?? status.name.map { folder + "/" + $0 } ?? "" }

  static func number(_ value: Int64) -> JSONValue { .string(String(value)) }
}
