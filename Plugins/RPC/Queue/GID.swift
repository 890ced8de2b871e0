import DownpipeCore
import DownpipeDigest
import Synchronization

/// The name of a download in aria2's protocol: 16 hexadecimal digits.
///
/// A download whose id has this form has it as its GID. Of other ids the GID is a digest.
struct GID: Sendable, Hashable {
  let text: String

  /// - Parameter text: 16 hexadecimal digits, not all zero.
  init?(_ text: String) {
    let text = text.lowercased()
    guard text.utf8.count == 16, Self.isHexadecimal(text), text.contains(where: { $0 != "0" }) else { return nil }
    self.text = text
  }

  init(_ id: DownloadID) {
    if let gid = GID(id.rawValue), gid.text == id.rawValue {
      self = gid
    } else {
      text = sha256(Array(id.rawValue.utf8)).prefix(8).hexadecimal
    }
  }

  static func random() -> GID {
    while true {
      let digits = String(UInt64.random(in: 1 ... .max), radix: 16)
      if let gid = GID(String(repeating: "0", count: 16 - digits.count) + digits) { return gid }
    }
  }

  /// The id of a download that is added with this GID.
  var id: DownloadID { DownloadID(text) }

  static func isHexadecimal(_ text: String) -> Bool {
    text.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
  }
}

extension Sequence<UInt8> {
  /// Two lower-case digits for each byte.
  var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

/// Finds downloads by their GIDs, and by the beginnings of them.
final class GIDIndex: Sendable {
  private let downloader: Downloader
  /// The ids that are not GIDs themselves, as far as clients were told of them.
  private let others = Mutex<[GID: DownloadID]>([:])
  private static let most = 100_000
  private static let page = 1000

  init(_ downloader: Downloader) { self.downloader = downloader }

  func gid(of id: DownloadID) -> GID {
    let gid = GID(id)
    if gid.text != id.rawValue {
      others.withLock { others in
        if others.count >= Self.most { others = [:] }
        others[gid] = id
      }
    }
    return gid
  }

  /// Returns the download with a GID, or with the only one that begins so.
  /// - Throws: ``RPCFailure`` as aria2 does; errors of the ledger.
  func status(of given: String) async throws -> DownloadStatus {
    let text = given.lowercased()
    guard (1...16).contains(text.utf8.count), GID.isHexadecimal(text) else {
      throw RPCFailure("Invalid GID \(given.prefix(32))")
    }
    if let gid = GID(text) {
      if let status = try await downloader.status(of: gid.id) { return status }
      if let id = others.withLock({ $0[gid] }), let status = try await downloader.status(of: id) { return status }
    }
    var found: DownloadStatus?
    for try await status in all where gid(of: status.id).text.hasPrefix(text) {
      guard found == nil else { throw RPCFailure("GID \(given) is not unique") }
      found = status
    }
    guard let found else { throw RPCFailure("GID \(given) is not found") }
    return found
  }

  /// All downloads of the ledger.
  private var all: AsyncThrowingStream<DownloadStatus, any Error> {
    let downloader = downloader
    let state = Mutex<(page: [DownloadStatus], offset: Int, isAtEnd: Bool)>(([], 0, false))
    return AsyncThrowingStream {
      while true {
        let (next, query) = state.withLock { state -> (DownloadStatus?, DownloadQuery?) in
          if let next = state.page.popLast() { return (next, nil) }
          return state.isAtEnd ? (nil, nil) : (nil, DownloadQuery(limit: Self.page, offset: state.offset))
        }
        if let next { return next }
        guard let query else { return nil }
        let page = try await downloader.statuses(query)
        state.withLock { state in
          state = (page.reversed(), query.offset + page.count, page.count < Self.page)
        }
      }
    }
  }
}
