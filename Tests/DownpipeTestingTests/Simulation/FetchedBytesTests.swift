@_spi(Ledger) import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeTesting

/// Which bytes count as received twice.
@Suite(.endsHangs)
struct FetchedBytesTests {
  private static let id: DownloadID = "d0"
  private static let file = FileContent(position: 0, size: 700_000)
  private static let policy = CheckpointPolicy(bytes: 64 << 10, interval: .seconds(1))

  /// Receives a range as one body.
  /// - Returns: What is wrong.
  private func receive(
    _ range: ByteRange, asking asked: RequestedRange?, of content: FileContent = file, chunk: Int64 = 100_000,
    beside received: FetchedBytes.Received? = nil, into fetched: inout FetchedBytes
  ) throws -> [String] {
    let url = try #require(URL(string: "https://one.example/a0"))
    let request = SourceRequest(url: url, id: Self.id, range: asked)
    var body = fetched.begin(
      request, content, from: range.lowerBound, 1, beside: received ?? fetched.received(of: Self.id),
      isSegmented: false, failures: 0)
    defer { fetched.ended(body) }
    return stride(from: range.lowerBound, to: range.upperBound, by: Int64.Stride(chunk)).compactMap { start in
      fetched.received(start..<min(start + chunk, range.upperBound), of: &body, failures: 0)
    }
  }

  private func record(_ ranges: ByteRangeSet = ByteRangeSet()) throws -> DownloadRecord {
    let request = DownloadRequest(try #require(URL(string: "https://one.example/a0")), id: Self.id)
    var record = DownloadRecord(
      request: request, generation: 1, arrival: 1, rank: Rank(), createdAt: .distantPast)
    record.checkpoint.ranges = ranges
    return record
  }

  @Test("a request may repeat 64 KiB, and no byte more")
  func comparison() throws {
    var fetched = FetchedBytes()
    #expect(try receive(0..<300_000, asking: nil, into: &fetched) == [])
    let start: Int64 = 300_000 - FetchedBytes.compared
    #expect(try receive(start..<400_000, asking: RequestedRange(from: start), into: &fetched) == [])
    #expect(
      try receive(400_000 - FetchedBytes.compared - 1..<500_000, asking: RequestedRange(from: 334_463), into: &fetched)
        .count == 1)
  }

  @Test("a server that was asked for a range and sends the whole file may repeat it, and what follows, too")
  func ignoredRange() throws {
    var fetched = FetchedBytes()
    #expect(try receive(0..<300_000, asking: nil, into: &fetched) == [])
    var other = fetched
    #expect(try receive(0..<400_000, asking: RequestedRange(from: 200_000), into: &fetched) == [])
    let url = try #require(URL(string: "https://one.example/a0"))
    let request = SourceRequest(url: url, id: Self.id, range: RequestedRange(from: 200_000))
    fetched.replied(SourceReply(coverage: .whole, body: .empty), to: request, 1)
    #expect(try receive(0..<500_000, asking: nil, into: &fetched) == [])
    // Asked for the whole file, although the server has sent the ranges that it was asked for.
    other.replied(SourceReply(coverage: .range(200_000..<300_000, total: .unknown), body: .empty), to: request, 1)
    #expect(try receive(0..<400_000, asking: nil, into: &other).isEmpty == false)
  }

  @Test("a death costs the bytes that are in no checkpoint, if they are not too many")
  func death() throws {
    let saved = try record(ByteRangeSet(0..<200_000))
    var fetched = FetchedBytes()
    #expect(try receive(0..<300_000, asking: nil, into: &fetched) == [])
    fetched.ledgerHas(saved, since: try record(), .save, Self.id)
    fetched.died(1, Self.policy) { _ in saved }
    var other = fetched
    #expect(try receive(134_464..<400_000, asking: RequestedRange(from: 134_464), into: &fetched) == [])
    #expect(try receive(134_463..<400_000, asking: RequestedRange(from: 134_463), into: &other).count == 1)
    // A ledger that never had a checkpoint.
    var lost = FetchedBytes()
    #expect(try receive(0..<300_000, asking: nil, into: &lost) == [])
    lost.died(1, Self.policy) { _ in nil }
    #expect(try receive(0..<300_000, asking: nil, into: &lost).count == 1)
  }

  @Test("what another connection brings after a request was sent is no repetition")
  func connections() throws {
    var fetched = FetchedBytes()
    #expect(try receive(0..<100_000, asking: nil, into: &fetched) == [])
    let before = fetched.received(of: Self.id)
    #expect(try receive(100_000..<400_000, asking: RequestedRange(from: 100_000), into: &fetched) == [])
    var other = fetched
    let asked = RequestedRange(from: 50_000)
    #expect(try receive(50_000..<400_000, asking: asked, beside: before, into: &fetched) == [])
    #expect(try receive(50_000..<400_000, asking: asked, into: &other).isEmpty == false)
  }

  @Test("another version, a restart and a proof of wrong bytes are reasons; a pause and a claim are none")
  func reasons() throws {
    var fetched = FetchedBytes()
    #expect(try receive(0..<300_000, asking: nil, into: &fetched) == [])
    let other = FileContent(position: 5_000, size: 700_000, version: 2)
    #expect(try receive(0..<300_000, asking: nil, of: other, into: &fetched) == [])
    let before = try record()
    var failed = before
    failed.error = DownloadError(.digestMismatch, "other bytes")
    let changes: [(DownloadRecord, LedgerChange, Bool)] = [
      (before, .transition(.restart), true), (before, .transition(.pause), false), (failed, .save, false),
      (before, .save, false),
    ]
    for (record, change, isReason) in changes {
      var fetched = fetched
      fetched.ledgerHas(record, since: before, change, Self.id)
      #expect(try receive(0..<300_000, asking: nil, of: other, into: &fetched).isEmpty == isReason, "\(change)")
    }
    // What the engine takes for a proof is one only if a server has given cause.
    fetched.doubt(Self.id)
    fetched.ledgerHas(failed, since: before, .save, Self.id)
    #expect(try receive(0..<300_000, asking: nil, of: other, into: &fetched).isEmpty)
  }
}
