/// Parsing of the routes in `/proc/net/route` and `/proc/net/ipv6_route`.
///
/// Lines that cannot be parsed are skipped, since a kernel can add columns or kinds of routes.
extension RouteTable {
  /// The maximum number of routes that are kept. A router with the routes of the whole internet has more.
  package static let routeLimit = 16_384

  private static let up: UInt32 = 0x1
  private static let reject: UInt32 = 0x200

  /// Parses both texts; `nil` if the system does not have the protocol.
  package init(ipv4: String?, ipv6: String?, isTruncated: Bool = false) {
    self.init(isTruncated: isTruncated)
    append(ipv4, parse: Self.ipv4Route)
    append(ipv6, parse: Self.ipv6Route)
  }

  private mutating func append(_ text: String?, parse: ([Substring]) -> Route?) {
    for line in (text ?? "").split(whereSeparator: \.isNewline) where line.utf8.count < 512 {
      guard let route = parse(line.split(whereSeparator: \.isWhitespace)) else { continue }
      guard routes.count < Self.routeLimit else {
        isTruncated = true
        return
      }
      routes.append(route)
    }
  }

  /// Parses `Iface Destination Gateway Flags RefCnt Use Metric Mask …`. Addresses are in network byte order, printed as
  /// numbers of the machine's byte order. The metric is decimal.
  private static func ipv4Route(_ fields: [Substring]) -> Route? {
    guard fields.count >= 8, let destination = hex(fields[1]), let flags = hex(fields[3]),
      let metric = UInt32(fields[6]), let rawMask = hex(fields[7]), flags & up != 0
    else { return nil }
    let mask = UInt32(bigEndian: rawMask)
    let length = mask.leadingZeroBitCount == 0 ? (~mask).leadingZeroBitCount : 0
    // A mask with gaps is not a prefix.
    guard mask == (length == 0 ? 0 : UInt32.max << UInt32(32 - length)) else { return nil }
    return Route(
      IPAddress(family: .v4, bits: UInt128(UInt32(bigEndian: destination) & mask)), length: length,
      interface: interface(fields[0]), metric: metric, isReject: flags & reject != 0)
  }

  /// Parses `destination length source length next-hop metric references use flags interface`. All numbers are
  /// hexadecimal, and addresses are in network byte order.
  private static func ipv6Route(_ fields: [Substring]) -> Route? {
    guard fields.count >= 10, fields[0].utf8.count == 32, isHex(fields[0]),
      let bits = UInt128(fields[0], radix: 16), let length = hex(fields[1]), length <= 128,
      let sourceLength = hex(fields[3]), sourceLength == 0, let metric = hex(fields[5]), let flags = hex(fields[8]),
      flags & up != 0 || flags & reject != 0
    else { return nil }
    return Route(
      IPAddress(family: .v6, bits: bits), length: Int(length), interface: interface(fields[9]), metric: metric,
      isReject: flags & reject != 0)
  }

  /// The interface; `nil` for `*`, which stands for a route without one.
  private static func interface(_ field: Substring) -> String? { field == "*" ? nil : String(field) }

  private static func hex(_ field: Substring) -> UInt32? {
    field.utf8.count <= 8 && isHex(field) ? UInt32(field, radix: 16) : nil
  }

  private static func isHex(_ field: Substring) -> Bool {
    // The integer initializers accept signs.
    field.utf8.allSatisfy {
      (0x30...0x39).contains($0) || (0x41...0x46).contains($0) || (0x61...0x66).contains($0)
    }
  }
}
