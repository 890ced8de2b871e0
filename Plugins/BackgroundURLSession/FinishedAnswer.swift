import DownpipeCore
import DownpipeURLSession
import Foundation

/// The head of the response to a background task, small enough to be stored beside its file.
struct FinishedAnswer: Hashable, Sendable, Codable {
  let status: Int
  let headers: HeaderFields
  /// The URL that responded, after the redirects that the system has followed.
  let url: String

  /// Creates a response without cookies, without fields that are too long, and with a limited number of fields.
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

  /// Whether the body is content of the file rather than an error page.
  var bringsBytes: Bool { [200, 203, 206].contains(status) }
}

extension FinishedAnswer {
  /// The reply for a task that has ended.
  ///
  /// The coverage follows from the response and the size of the file. After a broken connection the system resumes by
  /// itself, with its own `If-Range`, and reports only the head of the last response, whose Content-Range is shorter
  /// than the file: such a file starts where the request asked it to.
  /// - Parameters:
  ///   - tag: The request.
  ///   - size: The size of the finished file; ignored when the response has no content of the file.
  ///   - body: The file.
  /// - Throws: ``DownloadError`` with `.lengthMismatch` when response and file disagree, `.unproven` when the system
  ///   resumed without a validator, `.insecureRedirect` after a redirect from https to http, `.invalidResponse`.
  func reply(to tag: TransferTag, size: Int64, body: Body) throws(DownloadError) -> SourceReply {
    guard let asked = URL(string: tag.url), let url = URL(string: url), RequestURL.isSupported(url) else {
      throw DownloadError(.invalidResponse, "the response is from a URL that is not HTTP")
    }
    if asked.scheme?.lowercased() == "https", url.scheme?.lowercased() != "https" {
      throw DownloadError(
        .insecureRedirect, "the server redirected from https to \(url.redacted), which is not encrypted")
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
            .unproven,
            "the system resumed at byte \(range.lowerBound) without a validator that proves that the file is the same")
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
