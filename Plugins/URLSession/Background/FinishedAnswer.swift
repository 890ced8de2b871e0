import DownpipeCore
import Foundation

/// The head of the answer to a background task, small enough to be kept beside its file.
struct FinishedAnswer: Hashable, Sendable, Codable {
  let status: Int
  let headers: HeaderFields
  /// The URL that answered. The system follows redirects of background tasks by itself.
  let url: String

  /// Makes an answer. Fields that are too long, or too many, are left out, and so are cookies.
  init(status: Int, headers: HeaderFields, url: String) {
    self.status = status
    self.url = url
    self.headers = HeaderFields(
      Array(
        headers.fields.lazy
          .filter { field in
            field.name.utf8.count + field.value.utf8.count <= Self.maximumField
              && !field.name.caseInsensitivelyEquals("Set-Cookie")
          }
          .prefix(Self.maximumFields)))
  }

  private static let maximumField = 4096
  private static let maximumFields = 128

  /// Whether the body is of the file, and not an error page.
  var bringsBytes: Bool { [200, 203, 206].contains(status) }
}

extension FinishedAnswer {
  /// The reply for a task that has ended.
  ///
  /// What the bytes *are* follows from the answer and from the size of the file. When a connection broke, the
  /// system goes on by itself where it stood, under an `If-Range` of its own, and then shows the head
  /// of the last answer only, whose Content-Range is shorter than the file: such a file begins where it was asked to.
  /// - Parameters:
  ///   - tag: what was asked for.
  ///   - size: the size of the finished file; unused when the answer brings no bytes.
  ///   - body: the file.
  /// - Throws: ``DownloadError`` with `.lengthMismatch` when answer and file do not agree, `.unproven` when the
  ///   system went on without a validator, `.tls` when it followed a redirect from https to http, `.invalidResponse`.
  func reply(to tag: TransferTag, size: Int64, body: Body) throws(DownloadError) -> SourceReply {
    guard let asked = URL(string: tag.url), let url = URL(string: url), RequestURL.isSupported(url) else {
      throw DownloadError(.invalidResponse, "the answer came from a URL that is not HTTP")
    }
    if asked.scheme?.lowercased() == "https", url.scheme?.lowercased() != "https" {
      throw DownloadError(.tls, "the server redirected from https to \(url.redacted), which is not encrypted")
    }
    var reply = try SourceReply(httpStatus: status, headers: headers, url: url, body: body)
    guard !reply.noteUndoneCoding() else { return reply }
    switch reply.coverage {
    case .whole:
      if case .known(let length) = reply.length, length != size { throw mismatch(length, size) }
      reply.length = .known(size)
    case .range(let range, let total):
      let start = tag.start ?? 0
      if size != Int64(range.count) {
        guard range.lowerBound > start, size == range.upperBound - start else {
          throw mismatch(Int64(range.count), size)
        }
        guard reply.validator != nil else {
          throw DownloadError(
            .unproven, "the system went on at byte \(range.lowerBound), and nothing proves that it is the same file")
        }
        reply.coverage =
          tag.start == nil && total == .known(size) ? .whole : .range(start..<range.upperBound, total: total)
      }
      reply.length = .known(size)
    case .multipart, .unreadable, .none: break
    }
    return reply
  }

  private func mismatch(_ announced: Int64, _ size: Int64) -> DownloadError {
    DownloadError(.lengthMismatch, "the server announced \(announced) bytes, and the finished file has \(size)")
  }
}
