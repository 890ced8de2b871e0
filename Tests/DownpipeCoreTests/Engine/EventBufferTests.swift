@testable import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What a watcher that reads too slowly misses.
@Suite(.endsHangs)
struct EventBufferTests {
  private func event(_ name: String, _ kind: DownloadEvent.Kind) -> DownloadEvent {
    DownloadEvent(DownloadRequest(URL(string: "https://example.org/\(name)")!, id: DownloadID(name)), kind)
  }

  private func progress(_ name: String) -> DownloadEvent { event(name, .stepProgress(StepProgress(completed: 1))) }

  private func read(_ buffer: EventBuffer) async -> [String] {
    buffer.finish()
    var texts: [String] = []
    while let event = await buffer.next() {
      switch event.kind {
      case .stepFinished(let name): texts.append("\(event.id) \(name)")
      case .stepProgress: texts.append("\(event.id) …")
      case .missed(let count): texts.append("\(event.id) misses \(count)")
      default: texts.append("\(event.kind)")
      }
    }
    return texts
  }

  @Test("progress goes first, and without a word")
  func progressGoesFirst() async {
    let buffer = EventBuffer(capacity: 4)
    for event in [progress("a"), event("a", .stepFinished(name: "1")), progress("b"), progress("a")] {
      buffer.append(event)
    }
    buffer.append(event("b", .stepFinished(name: "2")))
    #expect(await read(buffer) == ["a 1", "b 2"])
  }

  @Test("progress pushes out no other event")
  func progressPushesNothingOut() async {
    let buffer = EventBuffer(capacity: 2)
    for number in 1...2 { buffer.append(event("a", .stepFinished(name: "\(number)"))) }
    buffer.append(progress("a"))
    #expect(await read(buffer) == ["a 1", "a 2"])
  }

  @Test("then the oldest go, and their number comes in their place")
  func lossIsTold() async {
    let buffer = EventBuffer(capacity: 3)
    for number in 1...5 { buffer.append(event("a", .stepFinished(name: "\(number)"))) }
    #expect(await read(buffer) == ["a misses 2", "a 3", "a 4", "a 5"])
  }

  @Test("order and bound hold for any mix of events and readings", arguments: 0..<20 as Range<UInt64>)
  func order(_ seed: UInt64) async {
    var random = SeededGenerator(seed: seed)
    let buffer = EventBuffer(capacity: 8)
    var (appended, seen, missed) = (0, [Int](), 0)
    func take() async {
      guard let event = await buffer.next() else { return }
      switch event.kind {
      case .stepFinished(let name): seen.append(Int(name) ?? 0)
      case .missed(let count): missed += count
      default: break
      }
    }
    for _ in 0..<2000 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        appended += 1
        buffer.append(event("a", .stepFinished(name: "\(appended)")))
      case 2: buffer.append(progress("a"))
      default: if !buffer.isEmpty { await take() }
      }
    }
    buffer.finish()
    while !buffer.isEmpty { await take() }
    #expect(seen == seen.sorted() && seen.last == appended)
    #expect(seen.count + missed == appended)
  }
}
