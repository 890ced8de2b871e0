import DownpipeChecksum
import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct VerifyChecksumConformanceTests {
  @Test("VerifyChecksum conforms to the contract of a step")
  func conformance() async throws {
    let digest = try DigestSamples.digest(.sha256, of: DigestSamples.abc)
    try await PostProcessorConformance(
      VerifyChecksum(), .init(DigestSamples.abc, named: "abc", digests: [digest], named: "abc"),
      and: .init(DigestSamples.millionA, digests: [try DigestSamples.digest(.md5, of: DigestSamples.millionA)]),
      bad: .init(DigestSamples.nineDigits, digests: [digest])
    ).run()
  }

  @Test("a conditional VerifyChecksum keeps its abilities")
  func aWrappedStep() async throws {
    let digest = try DigestSamples.digest(.sha256, of: DigestSamples.abc)
    try await PostProcessorConformance(
      VerifyChecksum().when { _ in true }, wrapping: VerifyChecksum(),
      .init(DigestSamples.abc, named: "abc", digests: [digest], named: "abc"),
      bad: .init(DigestSamples.nineDigits, digests: [digest])
    ).run()
  }
}
