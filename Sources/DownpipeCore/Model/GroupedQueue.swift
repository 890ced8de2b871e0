/// A queue of elements in groups: the group with the smallest precedence goes first, and of equal ones the group with the
/// smallest element.
///
/// Inserting and removing cost O(log n), however many elements share a group whose precedence changes.
package struct GroupedQueue<Element: Comparable> {
  /// The first element of a group, at the group's precedence as far as it is known.
  private struct Turn: Comparable {
    let precedence: UInt64
    let first: Element
    let group: String

    static func < (left: Self, right: Self) -> Bool {
      left.precedence == right.precedence ? left.first < right.first : left.precedence < right.precedence
    }
  }

  private var groups: [String: MinHeap<Element>] = [:]
  /// For each group, the turn of its first element; also outdated turns, which are dropped when they come.
  private var turns = MinHeap<Turn>()
  /// The number of elements.
  package private(set) var count = 0

  package init() {}

  package mutating func insert(_ element: Element, in group: String) {
    let isFirst = groups[group]?.first.map { element < $0 } ?? true
    groups[group, default: MinHeap()].insert(element)
    count += 1
    guard isFirst else { return }
    turns.insert(Turn(precedence: 0, first: element, group: group))
    // Outdated turns must not fill the memory.
    if turns.count > 2 * count + 64 {
      turns = MinHeap(
        groups.compactMap { group, elements in
          elements.first.map { Turn(precedence: 0, first: $0, group: group) }
        })
    }
  }

  /// Removes and returns the first element.
  /// - Parameter precedence: The precedence of a group, which may have grown since the last call, but never falls; all
  ///   groups are equal if `nil`.
  package mutating func removeFirst(_ precedence: ((String) -> UInt64)? = nil) -> Element? {
    while let turn = turns.removeFirst() {
      guard let first = groups[turn.group]?.first, first == turn.first else { continue }
      let place = precedence?(turn.group) ?? 0
      if place > turn.precedence {
        turns.insert(Turn(precedence: place, first: first, group: turn.group))
        continue
      }
      _ = groups[turn.group]?.removeFirst()
      count -= 1
      if let next = groups[turn.group]?.first {
        turns.insert(Turn(precedence: place, first: next, group: turn.group))
      } else {
        groups[turn.group] = nil
      }
      return first
    }
    return nil
  }
}
