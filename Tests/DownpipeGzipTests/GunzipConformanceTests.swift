import DownpipeCore
import DownpipeGzip
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct GunzipConformanceTests {
  @Test("Gunzip conforms to the contract of a step")
  func conformance() async throws {
    try await PostProcessorConformance(
      Gunzip(),
      .init(GzipSamples.song, named: "song.txt.gz", gives: GzipSamples.songText, named: "song.txt"),
      and: .init(GzipSamples.member([1, 2, 3]), named: "a.tgz", gives: [1, 2, 3], named: "a.tar"),
      bad: .init(Array(GzipSamples.song.dropLast()), named: "cut.gz")
    ).run()
  }
}
