import DownpipeCore

/// The exit statuses of aria2, which its clients show for failed downloads.
enum Aria2ErrorCode: Int {
  case none = 0
  case unknown = 1
  case timedOut = 2
  case notFound = 3
  case tooSlow = 5
  case network = 6
  case cannotResume = 8
  case noSpace = 9
  case sameFile = 11
  case exists = 13
  case fileIO = 17
  case nameResolution = 19
  case badResponse = 22
  case tooManyRedirects = 23
  case authorization = 24
  case badOption = 28
  case unavailable = 29
  case removed = 31
  case checksum = 32

  init(_ error: DownloadError) {
    self =
      switch error.code {
      case .timedOut: .timedOut
      case .fileNotFound: .notFound
      case .httpStatus:
        switch error.httpStatus {
        case 404, 410: .notFound
        case 401, 403, 407: .authorization
        case 429, 503: .unavailable
        default: .badResponse
        }
      case .network, .offline, .tls, .tooManyOpenFiles: .network
      case .rangeIgnored, .rangeRefused, .rangeNotSatisfiable, .wrongRange, .wrongRangeEnd, .multipartRange,
        .unreadableRange:
        .cannotResume
      case .noSpace: .noSpace
      case .inUse: .sameFile
      case .alreadyExists: .exists
      case .permission, .storage: .fileIO
      case .hostNotFound: .nameResolution
      case .invalidResponse, .wrongContentCoding, .lengthMismatch: .badResponse
      case .tooManyRedirects: .tooManyRedirects
      case .invalidRequest, .unsupportedURL, .unsafePath: .badOption
      case .digestMismatch, .pieceMismatch, .damaged: .checksum
      case .cancelled, .removed: .removed
      default: .unknown
      }
  }
}
