/// A queue of elements in groups: the group with the smallest precedence goes first, and of equal ones the group with the
/// smallest element.
///
/// Inserting and removing cost O(log n), however many elements share a group whose precedence changes.
package struct GroupedQueue<Element: Comparable> {
  /// The first element of a group, at the group's precedence as far as it is known.
  @usableFromInline
  struct Standing: Comparable {
    @usableFromInline let precedence: UInt64
    @usableFromInline let first: Element
    @usableFromInline let group: String

    @inlinable
    init(precedence: UInt64, first: Element, group: String) {
      self.precedence = precedence
      self.first = first
      self.group = group
    }

    @inlinable
    static func < (left: Self, right: Self) -> Bool {
      left.precedence == right.precedence ? left.first < right.first : left.precedence < right.precedence
    }
  }

  @usableFromInline var groups: [String: MinHeap<Element>] = [:]
  /// For each group, the standing of its first element; also outdated standings, which are dropped when they come.
  @usableFromInline var standings = MinHeap<Standing>()
  @usableFromInline var number = 0
  /// The number of elements.
  @inlinable package var count: Int { number }

  @inlinable
  package init() {}

  @inlinable
  package mutating func insert(_ element: Element, in group: String) {
    let isFirst = groups[group]?.first.map { element < $0 } ?? true
    groups[group, default: MinHeap()].insert(element)
    number += 1
    guard isFirst else { return }
    standings.insert(Standing(precedence: 0, first: element, group: group))
    // Outdated standings must not fill the memory.
    if standings.count > 2 * count + 64 {
      standings = MinHeap(
        groups.compactMap { group, elements in
          elements.first.map { Standing(precedence: 0, first: $0, group: group) }
        })
    }
  }

  /// Removes and returns the first element.
  /// - Parameter precedence: The precedence of a group, which may have grown since the last call, but never falls; all
  ///   groups are equal if `nil`.
  @inlinable
  package mutating func removeFirst(_ precedence: ((String) -> UInt64)? = nil) -> Element? {
    while let standing = standings.removeFirst() {
      guard let first = groups[standing.group]?.first, first == standing.first else { continue }
      let place = precedence?(standing.group) ?? 0
      if place > standing.precedence {
        standings.insert(Standing(precedence: place, first: first, group: standing.group))
        continue
      }
      _ = groups[standing.group]?.removeFirst()
      number -= 1
      if let next = groups[standing.group]?.first {
        standings.insert(Standing(precedence: place, first: next, group: standing.group))
      } else {
        groups[standing.group] = nil
      }
      return first
    }
    return nil
  }
}
