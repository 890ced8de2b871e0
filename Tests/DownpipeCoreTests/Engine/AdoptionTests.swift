import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The validator in the checkpoint after a reply's bytes are joined with bytes on disk.
@Suite(.endsHangs)
struct AdoptionTests {
  private let here = URL(string: "https://example.org/file")!
  private let elsewhere = URL(string: "https://cdn.example.net/file")!
  private let strong = Validator(entityTag: EntityTag("v1"))

  private func adopted(
    _ validator: Validator?, from url: URL? = nil, isWhole: Bool = false, kept: Int64 = 40
  ) -> Checkpoint {
    var checkpoint = Checkpoint(
      ranges: ByteRangeSet(0..<40), total: .known(100), validator: strong, resource: here.resourceKey, name: "old",
      mediaType: "video/mp4")
    let reply = SourceReply(
      coverage: isWhole ? .whole : .range(30..<100, total: .known(100)), length: .known(isWhole ? 100 : 70),
      validator: validator, body: .empty)
    Adoption(reply, to: SourceRequest(url: url ?? here), keeping: kept, of: checkpoint).apply(to: &checkpoint)
    return checkpoint
  }

  @Test func theSameStrongValidatorStaysStrong() {
    #expect(adopted(strong).validator == strong)
  }

  @Test("bytes without a validator, or from another resource, make the validator of all bytes weak")
  func mixes() {
    for mixed in [adopted(nil), adopted(strong, from: elsewhere), adopted(Validator(entityTag: EntityTag("v2")))] {
      // It can still reveal a change, but is not sent as If-Range.
      #expect(mixed.validator?.entityTag == EntityTag("v1", isWeak: true))
      #expect(mixed.validator?.ifRange == nil)
      #expect(mixed.resource == here.resourceKey)
    }
    #expect(Validator(lastModified: .distantPast, responseDate: .distantFuture).weakened.ifRange == nil)
  }

  @Test("a whole body is compared with every kept byte: its validator replaces the old one")
  func wholeBodies() {
    let other = Validator(entityTag: EntityTag("v2"))
    #expect(adopted(other, from: elsewhere, isWhole: true).validator == other)
    #expect(adopted(other, from: elsewhere, isWhole: true).resource == elsewhere.resourceKey)
    #expect(adopted(nil, isWhole: true).validator == nil)
  }

  @Test func namesAndTypesStayWhereAReplyGivesNone() {
    let checkpoint = adopted(strong)
    #expect(checkpoint.name == "old")
    #expect(checkpoint.mediaType == "video/mp4")
    #expect(adopted(strong, kept: 0).name == "file")
  }
}
