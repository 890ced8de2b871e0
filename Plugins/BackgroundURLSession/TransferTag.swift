import DownpipeCore
import DownpipeURLSession
import Foundation

/// What a background task fetches, and for which download. It is stored in the `taskDescription`, which the system
/// keeps as long as the task, and beside the finished file.
///
/// An opening receives only a task or file whose tag is equal in every field.
struct TransferTag: Hashable, Sendable, Codable {
  let id: DownloadID
  /// The requested URL, before redirects.
  let url: String
  /// The first requested byte; the whole file when `nil`.
  let start: Int64?
  /// The byte after the last requested one; the end of the file when `nil`.
  let end: Int64?
  /// The validator of the partial, as sent: a different one means a different file.
  let ifRange: String?
  /// The condition of a request for the whole file, as sent: the answer says something about that validator only.
  let condition: String?

  /// Creates the tag of a request.
  ///
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an id, URL or entity tag that is too long to store.
  init(_ request: SourceRequest, ifRange: String?, condition: String? = nil) throws(DownloadError) {
    id = request.id
    url = request.url.absoluteString
    start = request.range?.start
    end = request.range?.end
    self.ifRange = ifRange
    self.condition = condition
    guard isValid else {
      throw DownloadError(
        .invalidRequest,
        "a background transfer accepts ids of at most \(Self.maximumID) bytes, URLs of at most \(Self.maximumURL) and "
          + "entity tags of at most \(Self.maximumValidator)")
    }
  }

  // MARK: The text

  /// The start of the text. A later format gets another number, and tasks with this one are then cancelled.
  private static let version = "downpipe/1 "
  private static let maximumID = 255
  private static let maximumURL = 16_384
  private static let maximumValidator = 1024
  /// JSON encodes one byte as at most six.
  private static let maximumText = 6 * (maximumID + maximumURL + 2 * maximumValidator) + 256

  private enum CodingKeys: String, CodingKey {
    case id, url, start, end
    case ifRange = "if"
    case condition = "unless"
  }

  /// Reads a task's description; `nil` when it is not a valid tag. The description may contain anything.
  init?(description: String?) {
    guard let description, description.utf8.count <= Self.maximumText, description.hasPrefix(Self.version),
      let tag = try? JSONDecoder().decode(Self.self, from: Data(description.utf8.dropFirst(Self.version.utf8.count))),
      tag.isValid
    else { return nil }
    self = tag
  }

  /// The description for a task.
  var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Strings and numbers can always be encoded.
    let json = (try? encoder.encode(self)) ?? Data()
    return Self.version + String(decoding: json, as: UTF8.self)
  }

  /// Whether all values are within their limits and consistent.
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
    if let condition {
      guard start == nil, condition.utf8.count <= Self.maximumValidator, HeaderField("If-None-Match", condition).isValid
      else { return false }
    }
    return true
  }
}
