#if Postgres
  /// A parameter of a statement.
  enum PostgresValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case text(String)
    /// A `bytea`.
    case bytes([UInt8])
    /// An array, for `= ANY`.
    case integers([Int64])
    /// An array, for `= ANY`.
    case texts([String])

    /// The value in the text format of the protocol; `nil` for a null. Bytes have none: they are sent as they are.
    var text: String? {
      switch self {
      case .null, .bytes: nil
      case .boolean(let value): value ? "t" : "f"
      case .integer(let value): "\(value)"
      // The shortest text that is read back as the same number; `inf` and `nan` are understood.
      case .real(let value): "\(value)"
      case .text(let value): value
      case .integers(let values): "{" + values.map { "\($0)" }.joined(separator: ",") + "}"
      case .texts(let values): "{" + values.map(Self.quoted).joined(separator: ",") + "}"
      }
    }

    /// An element of an array in its text form.
    static func quoted(_ text: String) -> String {
      var quoted = "\""
      for character in text.unicodeScalars {
        if character == "\"" || character == "\\" { quoted.unicodeScalars.append("\\") }
        quoted.unicodeScalars.append(character)
      }
      return quoted + "\""
    }
  }

  /// The parameters of one statement, as libpq wants them.
  struct PostgresParameters: ~Copyable {
    private var storage: [UInt8] = []
    /// Where each value begins in the storage; `nil` for a null.
    private var offsets: [Int?] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []

    /// - Throws: ``PostgresFault`` for a text with a NUL, which the server cannot store.
    init(_ values: [PostgresValue]) throws(PostgresFault) {
      for value in values {
        if case .bytes(let bytes) = value {
          append(bytes, format: 1)
        } else if let text = value.text {
          guard !text.utf8.contains(0) else {
            throw PostgresFault(.refused, "a text contains the character NUL, which PostgreSQL cannot store: remove it")
          }
          append(Array(text.utf8), format: 0)
        } else {
          offsets.append(nil)
          lengths.append(0)
          formats.append(0)
        }
      }
    }

    private mutating func append(_ bytes: [UInt8], format: Int32) {
      offsets.append(storage.count)
      lengths.append(Int32(clamping: bytes.count))
      formats.append(format)
      storage += bytes
      storage.append(0)
    }

    var count: Int32 { Int32(clamping: offsets.count) }

    /// Calls a function of libpq with the arrays of values, lengths and formats.
    borrowing func with<Result>(
      _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
    ) -> Result {
      storage.withUnsafeBytes { bytes in
        let base = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        let values = offsets.map { offset in offset.flatMap { base?.advanced(by: $0) } }
        return values.withUnsafeBufferPointer { values in
          lengths.withUnsafeBufferPointer { lengths in
            formats.withUnsafeBufferPointer { body(values.baseAddress, lengths.baseAddress, $0.baseAddress) }
          }
        }
      }
    }
  }
#endif
