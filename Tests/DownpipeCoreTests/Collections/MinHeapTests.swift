import DownpipeTesting
import Testing

@testable import DownpipeCore

struct MinHeapTests {
  @Test(arguments: 0..<50)
  func elementsComeInOrder(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var heap = MinHeap((0..<Int.random(in: 0..<40, using: &generator)).map { _ in Int.random(in: 0..<20) })
    var expected: [Int] = []
    while let element = heap.removeFirst() { expected.append(element) }
    #expect(expected == expected.sorted())
    heap = MinHeap()
    for element in expected.shuffled(using: &generator) { heap.insert(element) }
    #expect(heap.count == expected.count)
    #expect(heap.removeAll(through: 9) == expected.filter { $0 <= 9 })
    #expect(heap.first == expected.first { $0 > 9 })
  }
}
