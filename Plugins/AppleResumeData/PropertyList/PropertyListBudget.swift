/// Limits the size and depth of one property list or keyed archive.
///
/// Real resume data has about 100 values, four levels and 10 KiB. Binary lists may share values, so the budget counts
/// the values that are made rather than those in the file.
struct PropertyListBudget {
  /// The maximum size of a list, in bytes.
  static let maximumSize = 1 << 20
  /// The maximum nesting of arrays and dictionaries.
  static let maximumDepth = 64

  private var values = 50_000
  private var bytes = 4 << 20

  /// Counts one value of `count` bytes at a nesting depth.
  mutating func spend(_ count: Int = 0, depth: Int) throws(PropertyListError) {
    guard depth <= Self.maximumDepth else {
      throw PropertyListError("its values are nested deeper than \(Self.maximumDepth) levels or contain themselves")
    }
    values -= 1
    bytes -= count
    guard values >= 0, bytes >= 0 else { throw PropertyListError("it has more values than resume data can have") }
  }
}
