#if Command && (os(Linux) || os(macOS))
  import DownpipeCore

  /// The end of a program's output.
  struct LastOutput: Sendable {
    /// The most characters of the output in a message.
    static let maximumShown = 1000

    private let limit: Int
    private var bytes: [UInt8] = []

    init(limit: Int) { self.limit = limit }

    /// The last bytes; at most the limit.
    var kept: ArraySlice<UInt8> { bytes.suffix(limit) }

    mutating func append(_ block: UnsafeRawBufferPointer) {
      bytes.append(contentsOf: block.suffix(limit))
      // Moving the bytes for each block would be slow.
      if bytes.count > 2 * limit { bytes.removeFirst(bytes.count - limit) }
    }

    /// The end of the output for a message: on one line, without control characters and without the secrets of URLs;
    /// empty without output.
    var shown: String {
      let text = String(decoding: kept, as: UTF8.self).redactingURLs
      var line = ""
      var isBlank = false
      for scalar in text.unicodeScalars.suffix(4 * Self.maximumShown) {
        if scalar.properties.isWhitespace {
          isBlank = !line.isEmpty
          continue
        }
        if isBlank { line += " " }
        isBlank = false
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
          line += "\\u{\(String(scalar.value, radix: 16))}"
        default:
          line.unicodeScalars.append(scalar)
        }
      }
      guard !line.isEmpty else { return " and printed nothing" }
      let end = String(line.unicodeScalars.suffix(Self.maximumShown))
      return "; its output ends with “\(end.unicodeScalars.count < line.unicodeScalars.count ? "…" : "")\(end)”"
    }
  }
#endif
