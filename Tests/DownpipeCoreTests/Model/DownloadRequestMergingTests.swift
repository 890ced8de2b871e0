import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Adding again takes over what has changed in a request, and nothing else.
@Suite(.endsHangs)
struct DownloadRequestMergingTests {
  /// A property of a request, with two ways to change it.
  private struct Part {
    var name: String
    var change: @Sendable (inout DownloadRequest) -> Void
    var changeOtherwise: @Sendable (inout DownloadRequest) -> Void
  }

  private static let parts: [Part] = [
    Part(name: "url", change: { $0.url = url("a") }, changeOtherwise: { $0.url = url("b") }),
    Part(name: "mirrors", change: { $0.mirrors = [url("a")] }, changeOtherwise: { $0.mirrors = [url("b")] }),
    Part(name: "priority", change: { $0.priority = .high }, changeOtherwise: { $0.priority = .low }),
    Part(name: "intent", change: { $0.intent = .prefetch }, changeOtherwise: { $0.intent = Intent("other") }),
    Part(
      name: "deadline", change: { $0.deadline = Date(timeIntervalSince1970: 1) },
      changeOtherwise: { $0.deadline = Date(timeIntervalSince1970: 2) }),
    Part(name: "after", change: { $0.after = ["a"] }, changeOtherwise: { $0.after = ["b"] }),
    Part(name: "tags", change: { $0.tags = ["a"] }, changeOtherwise: { $0.tags = ["b"] }),
    Part(name: "metadata", change: { $0.metadata = ["a": "a"] }, changeOtherwise: { $0.metadata = ["a": "b"] }),
    Part(name: "expectedSize", change: { $0.expectedSize = 1 }, changeOtherwise: { $0.expectedSize = 2 }),
    Part(name: "sizeHint", change: { $0.sizeHint = 1 }, changeOtherwise: { $0.sizeHint = 2 }),
    Part(name: "steps", change: { $0.steps = .none }, changeOtherwise: { $0.steps = .only("a") }),
    Part(name: "refresh", change: { $0.refresh = .ifChanged }, changeOtherwise: { $0.refresh = .whenStale }),
    Part(
      name: "expectedDigests", change: { $0.expectedDigests = [FileDigest(.sha256, bytes: [1])] },
      changeOtherwise: { $0.expectedDigests = [FileDigest(.sha256, bytes: [2])] }),
    Part(
      name: "pieces", change: { $0.pieces = PieceDigests(.crc32, length: 1, bytes: [1, 2, 3, 4]) },
      changeOtherwise: { $0.pieces = PieceDigests(.crc32, length: 2, bytes: [1, 2, 3, 4]) }),
    Part(name: "maximumSize", change: { $0.maximumSize = 1 }, changeOtherwise: { $0.maximumSize = 2 }),
    Part(
      name: "headers", change: { $0.headers = HeaderFields([HeaderField("A", "a")]) },
      changeOtherwise: { $0.headers = HeaderFields([HeaderField("A", "b")]) }),
    Part(
      name: "destination", change: { $0.destination.name = "a" }, changeOtherwise: { $0.destination.directory = "b" }),
    Part(
      name: "headStart", change: { $0.headStart = .init(file: "a", count: 1) },
      changeOtherwise: { $0.headStart = .init(file: "b", count: 1) }),
    // There is one other value only.
    Part(
      name: "isNamedByServer", change: { $0.isNamedByServer = true }, changeOtherwise: { $0.isNamedByServer = true }),
    Part(
      name: "lineage", change: { $0.lineage = .init(following: DownloadRequest(url("p"), id: "p")) },
      changeOtherwise: { $0.lineage = .init(following: DownloadRequest(url("q"), id: "q")) }),
  ]

  private static func url(_ name: String) -> URL { URL(filePath: "/\(name)") }

  private let base = DownloadRequest(Self.url("base"), id: "a")

  private func update(
    _ record: inout DownloadRecord, at now: Date = Date(), _ change: (inout DownloadRecord) -> Void
  ) {
    _ = record.update(by: "me", at: now, ranking: .arrival, isFinished: { _ in false }, change)
  }

  /// Fails for a new property of requests that is not merged.
  @Test func noFieldIsForgotten() {
    let fields = Set(Mirror(reflecting: base.box[0]).children.compactMap(\.label)).subtracting(["id"])
    #expect(Set(DownloadRequest.MergedPart.all.map(\.name)) == fields)
    #expect(DownloadRequest.MergedPart.all.count == fields.count)
    #expect(Set(Self.parts.map(\.name)) == fields)
  }

  @Test func everyPartIsMergedByItself() {
    for part in Self.parts {
      var other = base
      part.change(&other)
      #expect(other != base, "\(part.name)")
      var third = base
      part.changeOtherwise(&third)
      #expect(base.takingOver(other, since: base) == other, "\(part.name): a new value is taken over")
      #expect(other.takingOver(base, since: base) == other, "\(part.name): a change made since is kept")
      #expect(
        other.takingOver(third, since: base) == third, "\(part.name): if both have changed it, the new request wins")
      #expect(other.takingOver(other, since: other) == other)
      // Header fields stay bound to the origin that they were given for: see `BoundHeadersTests`.
      for unlike in Self.parts where unlike.name != part.name && Set([unlike.name, part.name]) != ["url", "headers"] {
        var mine = base
        unlike.change(&mine)
        var both = mine
        part.change(&both)
        #expect(mine.takingOver(other, since: base) == both, "\(part.name) and \(unlike.name) are merged independently")
      }
    }
  }

  @Test func theIDStays() {
    var other = base
    other.id = "b"
    #expect(base.takingOver(other, since: base).id == "a")
  }

  private func record() -> DownloadRecord {
    DownloadRecord(
      request: base, generation: 1, arrival: 1, rank: Rank(), createdAt: Date(timeIntervalSince1970: 1))
  }

  /// A resource that the old link waited for does not apply to another link.
  @Test func anotherLinkIsShortOfNothing() {
    for (url, awaited) in [(base.url, Awaited?.some(.link)), (Self.url("other"), nil)] {
      var (added, updated) = (record(), record())
      (added.awaited, updated.awaited) = (.link, .link)
      var request = base
      request.url = url
      request.priority = .high
      _ = added.addAgain(LedgerAddition(request: request, arrival: 2), at: Date(), ranking: .arrival) { _ in false }
      #expect(added.awaited == awaited)
      update(&updated) { $0.request = request }
      #expect(updated.awaited == awaited)
    }
  }

  /// A refresh of a feed must neither reorder the queue nor reset the user's changes.
  @Test func aFeedThatIsReadAgainChangesNothing() throws {
    var record = record()
    update(&record, at: Date(timeIntervalSince1970: 2)) { $0.request.priority = .high }
    let before = record
    let isChanged = record.addAgain(
      LedgerAddition(request: base, arrival: 99), at: Date(timeIntervalSince1970: 3), ranking: .arrival
    ) { _ in false }
    #expect(!isChanged)
    #expect(record == before)
  }

  /// Setting `added` to `nil` declares that the request is as it was added.
  @Test func whatWasAddedCanBeSetAnew() {
    var record = record()
    update(&record) { $0.request.priority = .high }
    #expect(record.added == base)
    update(&record) { $0.added = nil }
    #expect(record.added == nil)
    #expect(record.request.priority == .high)
  }
}
