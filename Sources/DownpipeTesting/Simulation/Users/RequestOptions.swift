extension SimulatedCommand {
  /// What a simulated user asks for in a request, beside the file.
  ///
  /// ```swift
  /// SimulatedCommand.add(0, file: 0, with: [.mirrors, .segments])
  /// ```
  public struct RequestOptions: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// The options as bits.
    public let rawValue: UInt16

    /// Creates a set from its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The file has the digest of the present version.
    public static let digest = Self(rawValue: 1)
    /// The file has the size of the present version.
    public static let size = Self(rawValue: 2)
    /// The copies of the file on other servers are mirrors.
    public static let mirrors = Self(rawValue: 4)
    /// The file is fetched over several connections, in a pipeline with ``SimulatedMachine/segments``.
    public static let segments = Self(rawValue: 8)
    /// The server is asked whether the file has changed if the finished download is added again.
    public static let ifChanged = Self(rawValue: 16)
    /// A known download keeps its request.
    public static let keep = Self(rawValue: 32)

    private static let names: [(Self, String)] = [
      (.digest, "digest"), (.size, "size"), (.mirrors, "mirrors"), (.segments, "segments"), (.ifChanged, "ifChanged"),
      (.keep, "keep"),
    ]

    /// The set as Swift source.
    public var description: String {
      "[" + Self.names.filter { contains($0.0) }.map { ".\($0.1)" }.joined(separator: ", ") + "]"
    }

    /// A random set: each option on its own, as often as `probabilities` say.
    static func random(using generator: inout SeededGenerator) -> Self {
      let probabilities: [(Self, ClosedRange<Int>)] = [
        (.digest, 0...24), (.size, 0...9), (.mirrors, 0...39), (.segments, 0...29), (.ifChanged, 0...19),
        (.keep, 0...4),
      ]
      var options: Self = []
      for (option, range) in probabilities where range.contains(Int.random(in: 0..<100, using: &generator)) {
        options.insert(option)
      }
      return options
    }
  }
}
