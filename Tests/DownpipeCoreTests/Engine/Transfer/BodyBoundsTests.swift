import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Where a body begins and ends, and what its end means.
@Suite(.endsHangs)
struct BodyBoundsTests {
  private func reply(_ coverage: Coverage = .whole, length: ByteCount = .unknown) -> SourceReply {
    SourceReply(coverage: coverage, length: length, body: Body(push: { _ in }))
  }

  private func code(_ work: () throws -> Void) -> DownloadError.Code? {
    do { try work() } catch { return (error as? DownloadError)?.code }
    return nil
  }

  @Test func aReplyAnnouncesItsEndOrTheFileIsKnownToEndThere() {
    let announced = BodyBounds(
      of: reply(length: .known(9)), from: 0, comparing: 5, knownTotal: 7, maximum: nil)
    #expect(announced.end == 9 && announced.isEndAnnounced && announced.compares && announced.resumesAt == 0)
    let known = BodyBounds(of: reply(), from: 0, comparing: 5, knownTotal: 7, maximum: nil)
    #expect(known.end == 7 && !known.isEndAnnounced)
    #expect(BodyBounds(of: reply(), from: 0, comparing: 0, knownTotal: 7, maximum: nil).end == 7)
    let range = BodyBounds(
      of: reply(.range(3..<8, total: .known(10))), from: 3, comparing: 5, knownTotal: 10, maximum: nil)
    #expect(range.end == 8 && range.isEndAnnounced && range.resumesAt == 5)
  }

  @Test func sizesAreChecked() {
    let bounds = BodyBounds(of: reply(length: .known(9)), from: 0, comparing: 0, knownTotal: nil, maximum: 8)
    #expect(code { try bounds.checkMaximum() } == .tooLarge)
    #expect(code { try bounds.checkFile(of: 10) } == .tooLarge)
    let free = BodyBounds(of: reply(length: .known(9)), from: 0, comparing: 0, knownTotal: nil, maximum: nil)
    #expect(code { try free.checkMaximum() } == nil && code { try free.checkFile(of: 9) } == nil)
    #expect(code { try free.checkFile(of: 10) } == .lengthMismatch)
  }

  @Test func aBodyMustReachItsEndAndTheBytesOnDisk() {
    let bounds = BodyBounds(of: reply(length: .known(9)), from: 0, comparing: 5, knownTotal: nil, maximum: nil)
    #expect(code { try bounds.checkEnd(at: 8) } == .lengthMismatch && code { try bounds.checkEnd(at: 9) } == nil)
    let whole = BodyBounds(of: reply(), from: 0, comparing: 5, knownTotal: nil, maximum: nil)
    #expect(code { try whole.checkEnd(at: 4) } == .sizeChanged && code { try whole.checkEnd(at: 5) } == nil)
    let known = BodyBounds(of: reply(), from: 0, comparing: 0, knownTotal: 7, maximum: nil)
    #expect(code { try known.checkEnd(at: 6) } == .contentChanged && code { try known.checkEnd(at: 7) } == nil)
    let filled = BodyBounds(of: reply(), from: 0, comparing: 0, knownTotal: nil, maximum: nil, isNotEmpty: true)
    #expect(code { try filled.checkEnd(at: 0) } == .contentChanged && code { try filled.checkEnd(at: 1) } == nil)
  }

  @Test("another request follows as long as there is progress and bytes may be missing")
  func rest() throws {
    func finish(
      _ offset: Int64, _ total: ByteCount, expected: Int64? = nil, isWhole: Bool = false
    ) throws -> (again: Bool, total: ByteCount) {
      var checkpoint = Checkpoint(ranges: ByteRangeSet(0..<5), total: total)
      let bounds = BodyBounds(
        of: isWhole ? reply() : reply(.range(5..<8, total: total)), from: 5, comparing: 5, knownTotal: nil, maximum: nil
      )
      let again = try bounds.finish(at: offset, in: &checkpoint, expected: expected)
      #expect(checkpoint.ranges == ByteRangeSet(0..<offset))
      return (again, checkpoint.total)
    }
    #expect(try finish(8, .known(10)) == (true, .known(10)))
    #expect(try finish(10, .known(10)) == (false, .known(10)))
    #expect(code { _ = try finish(5, .known(10)) } == .lengthMismatch)
    #expect(try finish(8, .unknown) == (true, .unknown), "a range of a file of unknown size")
    #expect(try finish(5, .unknown) == (false, .known(5)), "only a reply without new bytes proves the end")
    #expect(try finish(8, .unknown, isWhole: true) == (false, .known(8)))
    #expect(code { _ = try finish(8, .unknown, expected: 9, isWhole: true) } == .lengthMismatch)
  }
}
