import DownpipeChecksum
import DownpipeCore
import DownpipeTesting
import Foundation
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

  @Test("VerifyChecksum with a checksum file conforms to the contract of a step")
  func aChecksumFile() async throws {
    func example(_ bytes: [UInt8], of summed: [UInt8]) throws -> PostProcessorConformance.Example {
      let sums = Array("\(try DigestSamples.digest(.sha256, of: summed).hex)\n".utf8)
      return PostProcessorConformance.Example(bytes).fetching { url, _, _ in
        #expect(url.absoluteString.hasSuffix(".sha256"))
        return sums
      }
    }
    try await PostProcessorConformance(
      VerifyChecksum(file: .beside(".sha256")), example(DigestSamples.abc, of: DigestSamples.abc),
      and: example(DigestSamples.millionA, of: DigestSamples.millionA),
      bad: example(DigestSamples.nineDigits, of: DigestSamples.abc)
    ).run()
  }
}
