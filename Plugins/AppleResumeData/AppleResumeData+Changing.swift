public import DownpipeCore
public import Foundation

extension AppleResumeData {
  /// Sets the number of bytes in the partial file.
  ///
  /// Updates the `Range` header of the archived current request. The byte range stays the same: it is the range that
  /// the app requested as a whole.
  /// - Throws: `DownloadError` with the code `resumeData` for a negative number.
  public mutating func update(bytesReceived count: Int64) throws(DownloadError) {
    guard count >= 0 else { throw Self.unexpected(Key.bytesReceived, .integer(Int128(count))) }
    bytesReceived = count
    info[Key.bytesReceived] = .integer(Int128(count))
    if currentRequest?.headers["Range"] != nil { askForTheRest() }
  }

  /// Replaces the URL, in the archived requests too, and makes the current request ask for the missing bytes.
  ///
  /// The validator decides whether the new URL has the same content.
  /// - Parameters:
  ///   - url: The fresh link.
  ///   - headers: The header fields that replace the present ones. When `nil`, the present ones stay; when
  ///     the new URL has another origin, only those that say nothing about the user, such as `Accept`.
  /// - Throws: `DownloadError` with the code `resumeData` for a URL that is not http or https, and
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

  /// The range that the app requested with a `Range` header, such as `100-199`; `nil` when it requested the whole file.
  public var byteRange: String? { info[Key.byteRange]?.string }

  /// Removes the byte range: the partial file then starts with the first byte of the file.
  ///
  /// For data of iOS 11.0 to 11.2, which record the `Range` header that the system sends on resuming as if the app had
  /// requested it, and then count from the wrong byte. Call this only when the partial file is known to start with the
  /// first byte: removing a range that the app did request puts later bytes at wrong positions.
  public mutating func forgetByteRange() {
    info[Key.byteRange] = nil
    originalRequest?.set(range: nil)
    currentRequest?.set(range: nil)
    askForTheRest()
  }

  /// Whether the archived requests have the form that iOS 10.0 and 10.1 wrote but could not read.
  ///
  /// Only plain lists can need repair: in a keyed archive this form is correct, and later systems read only this form.
  /// This type reads both.
  public var needsRepair: Bool {
    !isArchived
      && [currentRequest, originalRequest].contains { $0.map { $0.form == .named || $0.hasSystemRootName } ?? false }
  }

  /// Returns the data with its requests in the form that all systems up to iOS 11 read; unchanged data when it needs no
  /// repair.
  public func repaired() -> AppleResumeData {
    guard needsRepair else { return self }
    var copy = self
    copy.currentRequest?.set(form: .numbered)
    copy.originalRequest?.set(form: .numbered)
    return copy
  }

  /// Sets the range of the missing bytes in the current request, as the system does.
  ///
  /// Not in the original request, where it would count as requested by the app, and not when the app has requested a
  /// range.
  mutating func askForTheRest() {
    guard originalRequest != nil, let first = try? firstByte(), first == 0 else { return }
    currentRequest?.set(range: bytesReceived == 0 ? nil : "bytes=\(bytesReceived)-")
  }

  /// The maximum size of the header fields of a request, in bytes.
  private static let maximumHeaderBytes = 64 << 10

  /// Returns valid fields without `Range`, which follows from the bytes received.
  static func checked(_ headers: HeaderFields) throws(DownloadError) -> HeaderFields {
    var size = 0
    for field in headers.fields {
      guard field.isValid else {
        throw DownloadError(
          .invalidRequest,
          "the header field “\(field.name.prefix(64).escaped)” is malformed: its name must be a token and its value "
            + "must not contain control characters")
      }
      size += field.name.utf8.count + field.value.utf8.count
    }
    guard size <= maximumHeaderBytes else {
      throw DownloadError(
        .invalidRequest,
        "the header fields have \(size) bytes, more than the limit of \(maximumHeaderBytes)")
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
      kept = kept.reaching(Origin(url), from: Origin(self.url))
    } else {
      // A range that the app requested stays: the partial file starts at its first byte.
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
