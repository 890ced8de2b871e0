/// A dictionary whose entries are visited in the order in which their keys were inserted.
///
/// The order of a `Dictionary` differs from process to process and from copy to copy. What the engine decides must not
/// depend on it.
///
/// Inserting, looking up and removing cost O(1), the latter on average. A new value for a known key keeps the key's
/// place. The place of a removed entry stays empty until more than half of the places are empty.
struct OrderedTable<Key: Hashable, Value> {
  fileprivate struct Place {
    let key: Key
    /// `nil` if the entry was removed.
    var value: Value?
  }

  private var indices: [Key: Int] = [:]
  private var places: [Place] = []
  /// The index of the first place that may not be empty.
  private var start = 0

  /// Creates an empty table.
  init() {}

  /// Creates an empty table with space for a number of entries.
  init(minimumCapacity: Int) {
    indices.reserveCapacity(minimumCapacity)
    places.reserveCapacity(minimumCapacity)
  }

  var count: Int { indices.count }
  var isEmpty: Bool { indices.isEmpty }

  /// The value of a key; `nil` if there is none. Assigning `nil` removes the entry.
  subscript(key: Key) -> Value? {
    get { indices[key].flatMap { places[$0].value } }
    _modify {
      if let index = indices[key] {
        // In place: a copy of the value could copy what it holds.
        defer { if places[index].value == nil { didEmpty(index) } }
        yield &places[index].value
      } else {
        var value: Value?
        defer { if let value { append(value, key) } }
        yield &value
      }
    }
  }

  /// The value of a key, or a default value, which is inserted when it is changed.
  subscript(key: Key, default value: @autoclosure () -> Value) -> Value {
    get { self[key] ?? value() }
    _modify {
      var current = take(key) ?? value()
      defer { put(current, key) }
      yield &current
    }
  }

  /// Sets the value of a key.
  /// - Returns: The earlier value; `nil` if the key is new.
  @discardableResult
  mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
    guard let index = indices[key] else {
      append(value, key)
      return nil
    }
    defer { places[index].value = value }
    return places[index].value
  }

  /// Removes an entry.
  /// - Returns: Its value; `nil` if there is no such entry.
  @discardableResult
  mutating func removeValue(forKey key: Key) -> Value? {
    guard let index = indices[key], let value = places[index].value else { return nil }
    places[index].value = nil
    didEmpty(index)
    return value
  }

  /// Removes the entry whose key was inserted first.
  mutating func removeFirst() {
    if let first { removeValue(forKey: first.key) }
  }

  /// Removes all entries.
  mutating func removeAll() { self = OrderedTable() }

  /// Removes the entries for which the closure returns `true`. It is called in order, once for each entry.
  mutating func removeAll(where isRemoved: (Key, Value) throws -> Bool) rethrows {
    for index in places.indices {
      guard let value = places[index].value, try isRemoved(places[index].key, value) else { continue }
      places[index].value = nil
      indices[places[index].key] = nil
    }
    compact()
  }

  /// The table with the same keys in the same order, and other values.
  func mapValues<Other>(_ transform: (Value) throws -> Other) rethrows -> OrderedTable<Key, Other> {
    var table = OrderedTable<Key, Other>(minimumCapacity: count)
    for (key, value) in self { table.append(try transform(value), key) }
    return table
  }

  // MARK: Places

  fileprivate mutating func append(_ value: Value, _ key: Key) {
    indices[key] = places.count
    places.append(Place(key: key, value: value))
  }

  /// Takes a value out of its place, which ``put(_:_:)`` fills again.
  private mutating func take(_ key: Key) -> Value? {
    guard let index = indices[key] else { return nil }
    defer { places[index].value = nil }
    return places[index].value
  }

  private mutating func put(_ value: Value, _ key: Key) {
    if let index = indices[key] { places[index].value = value } else { append(value, key) }
  }

  /// Removes the key of a place that has become empty.
  private mutating func didEmpty(_ index: Int) {
    indices[places[index].key] = nil
    if index == start { start += 1 }
    while start < places.count, places[start].value == nil { start += 1 }
    if places.count > 2 * count + 16 { compact() }
  }

  /// Removes the empty places.
  private mutating func compact() {
    start = 0
    guard places.count > count else { return }
    places.removeAll { $0.value == nil }
    for index in places.indices { indices[places[index].key] = index }
  }
}

extension OrderedTable: Sequence {
  struct Iterator: IteratorProtocol {
    fileprivate let places: [Place]
    fileprivate var index: Int

    mutating func next() -> (key: Key, value: Value)? {
      while index < places.count {
        defer { index += 1 }
        if let value = places[index].value { return (places[index].key, value) }
      }
      return nil
    }
  }

  /// The entries, in order.
  func makeIterator() -> Iterator { Iterator(places: places, index: start) }

  var underestimatedCount: Int { count }

  /// The entry whose key was inserted first.
  var first: (key: Key, value: Value)? { first { _ in true } }

  struct Keys: Sequence, IteratorProtocol {
    fileprivate var entries: OrderedTable.Iterator
    mutating func next() -> Key? { entries.next()?.key }
  }

  struct Values: Sequence, IteratorProtocol {
    fileprivate var entries: OrderedTable.Iterator
    mutating func next() -> Value? { entries.next()?.value }
  }

  /// The keys, in order.
  var keys: Keys { Keys(entries: makeIterator()) }

  /// The values, in the order of their keys.
  var values: Values { Values(entries: makeIterator()) }
}

extension OrderedTable: Sendable where Key: Sendable, Value: Sendable {}
extension OrderedTable.Place: Sendable where Key: Sendable, Value: Sendable {}
