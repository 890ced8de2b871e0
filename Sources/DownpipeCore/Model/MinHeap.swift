/// A collection whose smallest element is removed first. Inserting and removing cost O(log n).
package struct MinHeap<Element: Comparable> {
  private var elements: [Element]

  /// Creates a heap in O(n).
  package init(_ elements: [Element] = []) {
    self.elements = elements
    for index in stride(from: elements.count / 2, through: 0, by: -1) { sink(index) }
  }

  package var count: Int { elements.count }
  package var first: Element? { elements.first }

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

  package mutating func removeFirst() -> Element? {
    guard let first = elements.first, let last = elements.popLast() else { return nil }
    if !elements.isEmpty {
      elements[0] = last
      sink(0)
    }
    return first
  }

  /// Removes and returns the elements that are not larger than a limit, in order.
  package mutating func removeAll(through limit: Element) -> [Element] {
    var removed: [Element] = []
    while let first, first <= limit, let element = removeFirst() { removed.append(element) }
    return removed
  }

  private mutating func sink(_ start: Int) {
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
