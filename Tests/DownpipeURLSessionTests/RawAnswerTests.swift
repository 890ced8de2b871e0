import DownpipeTesting
import DownpipeURLSession
import HangLimit
import Testing

extension URLSessionTests {
  @Suite(.endsHangs)
  struct RawAnswerTests {
    @Test func keepsTheTable() async throws {
      // Foundation takes long for 4 MB of fields.
      var configuration = URLSessionSource.Configuration.ephemeral
      configuration.connectTimeLimit = .hangLimit
      configuration.idleTimeLimit = .hangLimit
      try await RawAnswers(URLSessionSource(configuration), excluding: Self.exclusions).run()
    }

    #if canImport(FoundationNetworking)
      private static let fatal = "Foundation on Linux ends the process"
      private static let fields = "Foundation on Linux refuses fields that it cannot parse"
      private static let joined = "Foundation joins fields of one name, and the source sees one Location, “film, film”"

      /// The limits in the documentation of the source have the same reasons.
      private static let exclusions: [ConformanceExclusion] = [
        .init("trailers", because: fatal),
        .init("unknown-in-second-field", because: fatal),
        .init("head-cut-short", because: fatal),
        .init("bare-lf", because: fields),
        .init("latin-1-field", because: fields),
        .init("no-reason", because: fields),
        .init("redirect-latin-1", because: fields),
        .init("redirect-twice-the-same", because: joined),
        .init("redirects-differ", because: joined),
        .init("unknown-content-coding", because: "libcurl refuses what it cannot decode when Foundation uses it"),
        .init("content-coding", because: "URLSession decodes content codings that were not requested"),
      ]
    #else
      private static let exclusions: [ConformanceExclusion] = [
        .init("content-coding", because: "URLSession decodes content codings that were not requested")
      ]
    #endif
  }
}
