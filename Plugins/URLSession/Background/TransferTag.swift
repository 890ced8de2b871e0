import DownpipeCore
import Foundation

/// What a background task fetches, and for which download: kept in the task's `taskDescription`, which the system
/// keeps for as long as the task, and beside the finished file.
///
/// A task or a file is only ever handed to an opening whose tag is equal, field for field.
struct TransferTag: Hashable, Sendable, Codable {
  /// The download.
  let id: DownloadID
  /// The URL that is asked for, before redirects.
  let url: String
  /// The first byte that is asked for; the whole file when `nil`.
  let start: Int64?
  /// The byte after the last; up to the end of the file when `nil`.
  let end: Int64?
  /// The validator of the bytes that are there, as it goes out: another one means another file.
  let ifRange: String?

  /// The tag of a request.
  ///
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an id or a URL that is too long to be kept.
  init(_ request: SourceRequest, ifRange: String?) throws(DownloadError) {
    id = request.id
    url = request.url.absoluteString
    start = request.range?.start
    end = request.range?.end
    self.ifRange = ifRange
    guard isValid else {
      throw DownloadError(
        .invalidRequest,
        "a background transfer takes ids of at most \(Self.maximumID) bytes, URLs of at most \(Self.maximumURL) and "
          + "entity tags of at most \(Self.maximumValidator)")
    }
  }

  // MARK: The text

  /// The text's first word: a later form gets another number, and tasks of this one are then cancelled.
  private static let version = "downpipe/1 "
  private static let maximumID = 255
  private static let maximumURL = 16_384
  private static let maximumValidator = 1024
  /// JSON makes six bytes of one at worst.
  private static let maximumText = 6 * (maximumID + maximumURL + maximumValidator) + 256

  private enum CodingKeys: String, CodingKey {
    case id, url, start, end
    case ifRange = "if"
  }

  /// Reads a task's description; `nil` when it is none of ours. Anything may stand there.
  init?(description: String?) {
    guard let description, description.utf8.count <= Self.maximumText, description.hasPrefix(Self.version),
      let tag = try? JSONDecoder().decode(Self.self, from: Data(description.utf8.dropFirst(Self.version.utf8.count))),
      tag.isValid
    else { return nil }
    self = tag
  }

  /// The text for a task's description.
  var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Texts and numbers can always be encoded.
    let json = (try? encoder.encode(self)) ?? Data()
    return Self.version + String(decoding: json, as: UTF8.self)
  }

  /// Whether everything in it is within bounds, and makes sense.
  var isValid: Bool {
    guard !id.rawValue.isEmpty, id.rawValue.utf8.count <= Self.maximumID, url.utf8.count <= Self.maximumURL,
      let location = URL(string: url), RequestURL.isSupported(location)
    else { return false }
    if let start, start < 0 { return false }
    if let end {
      guard let start, end > start else { return false }
    }
    if let ifRange {
      guard start != nil, ifRange.utf8.count <= Self.maximumValidator, HeaderField("If-Range", ifRange).isValid else {
        return false
      }
    }
    return true
  }
}
