extension Array {
  /// Replaces the first element whose key equals the new element's, or appends the new element.
  mutating func set(_ element: Element, by key: (Element) -> some Equatable) {
    if let index = firstIndex(where: { key($0) == key(element) }) {
      self[index] = element
    } else {
      append(element)
    }
  }
}
