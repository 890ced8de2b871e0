/// A collection whose smallest element is removed first. Inserting and removing cost O(log n).
///
/// Inlinable, because other modules would otherwise run its generic code, which is several times slower.
package struct MinHeap<Element: Comparable> {
  @usableFromInline var elements: [Element]

  /// Creates a heap in O(n).
  @inlinable
  package init(_ elements: [Element] = []) {
    self.elements = elements
    for index in stride(from: elements.count / 2, through: 0, by: -1) { sink(index) }
  }

  @inlinable
  package var count: Int { elements.count }
  @inlinable
  package var first: Element? { elements.first }

  @inlinable
  package mutating func insert(_ element: Element) {
    elements.append(element)
    var index = elements.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard elements[index] < elements[parent] else { return }
      elements.swapAt(index, parent)
      index = parent
    }
  }

  @inlinable
  package mutating func removeFirst() -> Element? {
    guard let first = elements.first, let last = elements.popLast() else { return nil }
    if !elements.isEmpty {
      elements[0] = last
      sink(0)
    }
    return first
  }

  /// Removes and returns the elements that are not larger than a limit, in order.
  @inlinable
  package mutating func removeAll(through limit: Element) -> [Element] {
    var removed: [Element] = []
    while let first, first <= limit, let element = removeFirst() { removed.append(element) }
    return removed
  }

  @inlinable
  mutating func sink(_ start: Int) {
    var index = start
    while true {
      var least = index
      let child = 2 * index + 1
      if child < elements.count, elements[child] < elements[least] { least = child }
      if child + 1 < elements.count, elements[child + 1] < elements[least] { least = child + 1 }
      guard least != index else { return }
      elements.swapAt(index, least)
      index = least
    }
  }
}

extension MinHeap: Sendable where Element: Sendable {}
