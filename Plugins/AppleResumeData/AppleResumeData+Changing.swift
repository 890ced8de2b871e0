public import DownpipeCore
public import Foundation

extension AppleResumeData {
  /// Says how many bytes the file holds now.
  ///
  /// A `Range` header in the archived current request follows. The byte range does not: it says what the task was
  /// asked for as a whole, which does not change while bytes arrive.
  /// - Throws: ``DownloadError`` with the code `resumeData` for a negative number.
  public mutating func update(bytesReceived count: Int64) throws(DownloadError) {
    guard count >= 0 else { throw Self.unexpected(Key.bytesReceived, .integer(Int128(count))) }
    bytesReceived = count
    info[Key.bytesReceived] = .integer(Int128(count))
    if currentRequest?.headers["Range"] != nil { askForTheRest() }
  }

  /// Goes on from another link to the same bytes: its URL replaces the old one everywhere, also in the archived
  /// requests, and the current request asks for the bytes that are missing.
  ///
  /// Whether the bytes are the same is for the validator to tell.
  /// - Parameters:
  ///   - url: The fresh link.
  ///   - headers: What to send with it instead of the present header fields. When `nil`, these stay, but not
  ///     `Authorization` and `Cookie` where the link leads to another host: they are no business of that host.
  /// - Throws: ``DownloadError`` with the code `resumeData` for a URL that is not http or https, and
  ///   `.invalidRequest` for malformed header fields and for more than 64 KiB of them.
  public mutating func refresh(url: URL, headers: HeaderFields? = nil) throws(DownloadError) {
    let url = try SafeURL.check(url)
    let headers = if let headers { try Self.checked(headers) } else { HeaderFields?.none }
    self.url = url
    info[Key.url] = .string(url.absoluteString)
    currentRequest?.refresh(url, headers)
    originalRequest?.refresh(url, headers)
    askForTheRest()
  }

  /// What the task's own `Range` header asks for, such as `100-199`; `nil` for a task that wants the whole file.
  public var byteRange: String? { info[Key.byteRange]?.string }

  /// Says that the file begins with the first byte, whatever the data says of a range.
  ///
  /// For data of iOS 11.0 to 11.2, which take the `Range` that the system itself sends on resuming for one that the
  /// app asked for, and from then on count from the wrong byte. Only whoever knows the file can tell these from true
  /// ranges: a true range must never be forgotten, or the bytes that follow go to the wrong place.
  public mutating func forgetByteRange() {
    info[Key.byteRange] = nil
    originalRequest?.set(range: nil)
    currentRequest?.set(range: nil)
    askForTheRest()
  }

  /// Whether the archived requests are in the form that iOS 10.0 and 10.1 wrote and could not read again.
  ///
  /// Only plain lists can need it: in a keyed archive the same form is right, and later systems read no other. This
  /// type reads both.
  public var needsRepair: Bool {
    !isArchived
      && [currentRequest, originalRequest].contains { $0.map { $0.form == .named || $0.hasSystemRootName } ?? false }
  }

  /// The data with its requests in the form that every system up to iOS 11 reads; the same data when nothing needs
  /// repair.
  public func repaired() -> AppleResumeData {
    guard needsRepair else { return self }
    var copy = self
    copy.currentRequest?.set(form: .numbered)
    copy.originalRequest?.set(form: .numbered)
    return copy
  }

  /// Writes the range that is missing into the current request, as the system does.
  ///
  /// Not into the original one, where it would be a wish of the app's; and not where a range of the app's own may be.
  mutating func askForTheRest() {
    guard originalRequest != nil, let first = try? firstByte(), first == 0 else { return }
    currentRequest?.set(range: bytesReceived == 0 ? nil : "bytes=\(bytesReceived)-")
  }

  /// The fields, if they can be sent, without the range, which follows from the bytes received.
  static func checked(_ headers: HeaderFields) throws(DownloadError) -> HeaderFields {
    var size = 0
    for field in headers.fields {
      guard field.isValid else {
        throw DownloadError(
          .invalidRequest,
          "the header field “\(field.name.prefix(64).escaped)” is malformed: its name must be a token and its value "
            + "must not hold control characters")
      }
      size += field.name.utf8.count + field.value.utf8.count
    }
    guard size <= PropertyListBudget.maximumHeaderBytes else {
      throw DownloadError(
        .invalidRequest,
        "the header fields have \(size) bytes, more than the \(PropertyListBudget.maximumHeaderBytes) allowed")
    }
    var headers = headers
    headers["Range"] = nil
    return headers
  }
}

extension ArchivedRequest {
  fileprivate mutating func refresh(_ url: URL, _ headers: HeaderFields?) {
    var kept = headers ?? self.headers
    if headers == nil {
      kept["Host"] = nil
      if !self.url.isSameOrigin(as: url) { kept.removeCredentials() }
    } else {
      // A range of the app's own stays what the file's bytes are counted from.
      kept["Range"] = self.headers["Range"]
    }
    set(url: url)
    if kept != self.headers { set(headers: kept) }
  }

  fileprivate mutating func set(range: String?) {
    var headers = headers
    headers["Range"] = range
    if headers != self.headers { set(headers: headers) }
  }
}

extension HeaderFields {
  /// Without what proves to a server who asks.
  mutating func removeCredentials() {
    for name in ["Authorization", "Cookie", "Proxy-Authorization"] { self[name] = nil }
  }
}

extension URL {
  /// Whether secrets meant for one are meant for the other.
  func isSameOrigin(as other: URL) -> Bool {
    hostKey == other.hostKey && (scheme ?? "").caseInsensitivelyEquals(other.scheme ?? "")
  }
}
