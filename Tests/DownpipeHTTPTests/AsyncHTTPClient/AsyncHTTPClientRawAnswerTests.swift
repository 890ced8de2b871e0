#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
  import DownpipeTesting
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct AsyncHTTPClientRawAnswerTests {
    private static let lengths = "SwiftNIO's parser allows one Content-Length, and none beside a Transfer-Encoding"
    private static let lines = "SwiftNIO's parser requires CR LF, one line a field, and printable characters"

    /// The limits in the documentation of the source have the same reasons.
    @Test func keepsTheTable() async throws {
      try await RawAnswers(
        AsyncHTTPClientSource(),
        excluding: [
          .init("length-twice", because: Self.lengths),
          .init("length-list", because: Self.lengths),
          .init("chunked-with-length", because: Self.lengths),
          .init("identity-with-length", because: Self.lengths),
          .init("bare-lf", because: Self.lines),
          .init("folded-field", because: Self.lines),
          .init("control-characters", because: Self.lines),
          .init("chunk-extension-with-spaces", because: "SwiftNIO's parser allows no space after the size of a chunk"),
          .init("many-fields", because: "SwiftNIO's decoder allows 256 fields"),
          .init("redirect-latin-1", because: "SwiftNIO replaces octets that are not UTF-8"),
        ]
      ).run()
    }
  }
#endif
