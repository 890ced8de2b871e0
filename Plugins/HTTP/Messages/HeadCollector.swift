#if LIBCURL
  import DownpipeCore

  /// Collects the header lines that libcurl hands over one by one.
  ///
  /// libcurl has checked that they are HTTP; it accepts what browsers accept, such as lines that end with a bare LF. A
  /// folded line belongs to the field before it (RFC 9112 §5.2). Octets become the characters up to U+00FF.
  struct HeadCollector {
    private(set) var fields = HeaderFields()
    /// Whether the next line is a status line: the first one, and the first after an interim response.
    private var isAtStart = true
    /// The bytes of all heads of the exchange: interim responses (1xx) and answers to authentication count as well.
    private(set) var bytes = 0

    /// Whether there is a Transfer-Encoding that libcurl does not see: one in several lines, or with a blank
    /// before its colon.
    private(set) var hidesTransferCoding = false

    /// Takes a line.
    /// - Returns: Whether it is the empty line at the end of a head.
    mutating func take(_ line: UnsafeRawBufferPointer) -> Bool {
      bytes += line.count
      let content = Self.trimmed(line)
      if content.isEmpty {
        isAtStart = line.first != 0x20 && line.first != 0x09
        return isAtStart
      }
      if isAtStart {
        isAtStart = false
        fields = HeaderFields()
        hidesTransferCoding = false
        if line.starts(with: "HTTP/".utf8) { return false }
      }
      if line.first == 0x20 || line.first == 0x09 {
        if let last = fields.fields.popLast() {
          if last.name.isTransferEncoding { hidesTransferCoding = true }
          fields.fields.append(HeaderField(last.name, "\(last.value) \(Self.text(content))"))
        }
        return false
      }
      guard let colon = content.firstIndex(of: UInt8(ascii: ":")) else { return false }
      let name = Self.text(Self.trimmed(UnsafeRawBufferPointer(rebasing: content[..<colon])))
      let value = Self.text(Self.trimmed(UnsafeRawBufferPointer(rebasing: content[(colon + 1)...])))
      fields.fields.append(HeaderField(name, value))
      if name.isTransferEncoding, name.utf8.count != colon - content.startIndex { hidesTransferCoding = true }
      return false
    }

    /// Takes the fields of the head: the collector keeps no memory for them while the body arrives.
    mutating func takeFields() -> HeaderFields {
      defer { fields = HeaderFields() }
      return fields
    }

    private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
      func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
      guard let start = bytes.firstIndex(where: { !isBlank($0) }), let end = bytes.lastIndex(where: { !isBlank($0) })
      else { return UnsafeRawBufferPointer(rebasing: bytes[..<0]) }
      return UnsafeRawBufferPointer(rebasing: bytes[start...end])
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
      if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
      return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
  }

  extension String {
    fileprivate var isTransferEncoding: Bool { caseInsensitivelyEquals("Transfer-Encoding") }
  }
#endif
