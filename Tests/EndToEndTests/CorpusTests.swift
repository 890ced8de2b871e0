import DownpipeCore
import Foundation
import Testing

private let corpora = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"]

extension EndToEnd {
  /// The cases of curl's own test suite with the default source. `.ci/corpus` runs them with the others.
  @Suite(.enabled(if: corpora != nil, "set DOWNPIPE_CORPORA to the folder of corpora"))
  struct CorpusTests {
    @Test func theToolAgreesWithCurl() async throws {
      let program = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Corpus/run.py").path(percentEncoded: false)
      let outcome = try await Command.downpipe([], by: ["python3", "-B", program, "curl", "--downpipe"]).run()
      print(outcome.lines.last ?? "")
      #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
    }
  }
}
