/// A number of bytes as it is typed: `4096`, `500M`, `2GiB`, `1.5G`, `10MB`.
struct ByteSize: Sendable, Hashable {
  var bytes: Int64

  /// Parses a number with an optional unit, in capital or small letters: `K`, `KiB`, `M`, `MiB` … are 1024-based,
  /// `KB`, `MB` … 1000-based, and `B` is a byte.
  init?(_ text: String) {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let number = Double(digits), let factor = Self.factor(text.dropFirst(digits.count).lowercased()) else {
      return nil
    }
    let bytes = (number * factor).rounded()
    guard bytes <= Self.largest else { return nil }
    self.bytes = Int64(bytes)
  }

  /// 8 EiB do not fit into the number.
  private static let largest = 0x1p62

  private static func factor(_ unit: String) -> Double? {
    if unit.isEmpty || unit == "b" { return 1 }
    guard let letter = unit.first, let power = ["k", "m", "g", "t", "p", "e"].firstIndex(of: String(letter)) else {
      return nil
    }
    let base: Double
    switch unit.dropFirst() {
    case "", "ib": base = 1024
    case "b": base = 1000
    default: return nil
    }
    return (0...power).reduce(1) { factor, _ in factor * base }
  }
}
