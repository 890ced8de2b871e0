#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An IP address as a number.
package struct IPAddress: Sendable, Hashable {
  package enum Family: Sendable, Hashable {
    case v4
    case v6

    package var bitCount: Int { self == .v4 ? 32 : 128 }
  }

  package let family: Family
  /// The address as a number; an IPv4 address is in the lower 32 bits.
  package let bits: UInt128

  package init(family: Family, bits: UInt128) {
    self.family = family
    self.bits = bits
  }

  /// Parses an address in its usual text form, such as `192.0.2.1` or `2001:db8::1`, without brackets or zone.
  /// An IPv4 address written in IPv6 (`::ffff:192.0.2.1`) is the IPv4 address.
  package init?(text: some StringProtocol) {
    // The C function would ignore everything after a zero byte.
    guard text.utf8.count < 64, !text.utf8.contains(0) else { return nil }
    var v4 = in_addr()
    if inet_pton(AF_INET, String(text), &v4) == 1 {
      self.init(family: .v4, bits: UInt128(UInt32(bigEndian: v4.s_addr)))
      return
    }
    var v6 = in6_addr()
    guard inet_pton(AF_INET6, String(text), &v6) == 1 else { return nil }
    self.init(bytes: withUnsafeBytes(of: v6) { Array($0) })
  }

  /// Creates an address from the 16 bytes of an IPv6 address.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    let bits = bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
    if bits >> 32 == 0xFFFF {
      self.init(family: .v4, bits: bits & 0xFFFF_FFFF)
    } else {
      self.init(family: .v6, bits: bits)
    }
  }

  /// Whether it is in 127.0.0.0/8 or is ::1, 0.0.0.0 or ::. Connections to the last two also stay on the machine.
  package var isLoopback: Bool {
    switch family {
    case .v4: bits >> 24 == 127 || bits == 0
    case .v6: bits <= 1
    }
  }

  /// Whether the first `length` bits are those of `prefix`.
  package func begins(with prefix: IPAddress, length: Int) -> Bool {
    guard family == prefix.family, (0...family.bitCount).contains(length) else { return false }
    let rest = family.bitCount - length
    return rest == 128 || bits >> UInt128(rest) == prefix.bits >> UInt128(rest)
  }
}

/// The host of a download, classified for routing.
package enum RoutedHost: Sendable, Hashable {
  /// The machine itself, or no host: no network is needed.
  case local
  /// An address, and the interface of a link-local address.
  case address(IPAddress, zone: String?)
  /// A host name.
  case name(String)

  /// Parses `Candidate.host`: a host with an optional `:port`. An IPv6 address can be in brackets.
  package init(_ text: String) {
    var host = text[...]
    if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
      host = host[host.index(after: host.startIndex)..<end]
    } else if let colon = host.lastIndex(of: ":"), host.firstIndex(of: ":") == colon {
      host = host[..<colon]
    }
    if host.hasSuffix(".") { host = host.dropLast() }
    // RFC 6874 writes the zone behind `%25`.
    let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    if let first = parts.first, let address = IPAddress(text: first) {
      guard !address.isLoopback else {
        self = .local
        return
      }
      let zone = parts.count > 1 ? (parts[1].hasPrefix("25") ? parts[1].dropFirst(2) : parts[1]) : ""
      self = .address(address, zone: zone.isEmpty ? nil : String(zone))
    } else if host.isEmpty || host.lowercased() == "localhost" || host.lowercased().hasSuffix(".localhost") {
      // RFC 6761 §6.3: these names never leave the machine.
      self = .local
    } else {
      self = .name(String(host))
    }
  }
}
