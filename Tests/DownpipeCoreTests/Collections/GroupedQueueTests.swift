import DownpipeTesting
import Testing

@testable import DownpipeCore

struct GroupedQueueTests {
  /// An element has a number and a group.
  private struct Item: Comparable {
    let number: Int
    let group: String
    static func < (left: Self, right: Self) -> Bool { left.number < right.number }
  }

  @Test("elements come by the precedence of their group, which grows, and then by size", arguments: 0..<50)
  func agreesWithAModel(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var queue = GroupedQueue<Item>()
    var model: [Item] = []
    var places: [String: UInt64] = [:]
    for step in 0..<400 {
      if Bool.random(using: &generator) || model.isEmpty {
        let item = Item(
          number: Int.random(in: 0..<1000, using: &generator) * 1000 + step,
          group: "\(Int.random(in: 0..<5, using: &generator))")
        queue.insert(item, in: item.group)
        model.append(item)
      } else {
        let expected = model.min { left, right in
          (places[left.group] ?? 0, left.number) < (places[right.group] ?? 0, right.number)
        }
        #expect(queue.removeFirst { places[$0] ?? 0 } == expected)
        model.removeAll { $0 == expected }
        if let expected { places[expected.group, default: 0] += UInt64.random(in: 0...2, using: &generator) }
      }
      #expect(queue.count == model.count)
    }
  }
}
