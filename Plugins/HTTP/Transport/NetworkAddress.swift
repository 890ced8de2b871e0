#if LIBCURL
  import CCurl
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// An IPv4 or IPv6 address, and whether it belongs to the public internet.
  struct NetworkAddress: Hashable, CustomStringConvertible {
    /// 4 or 16 bytes.
    let bytes: [UInt8]

    /// Reads a socket address; `nil` for another family than IPv4 and IPv6.
    init?(_ address: UnsafePointer<sockaddr>, length: Int) {
      switch Int32(address.pointee.sa_family) {
      case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
        bytes = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          withUnsafeBytes(of: $0.pointee.sin_addr) { Array($0) }
        }
      case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
        bytes = UnsafeRawPointer(address).assumingMemoryBound(to: sockaddr_in6.self)
          .withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { six in
            withUnsafeBytes(of: six.pointee.sin6_addr) { Array($0) }
          }
      default: return nil
      }
    }

    /// Reads an address as text, without brackets and zone.
    init?(_ text: String) {
      var four = in_addr()
      var six = in6_addr()
      if inet_pton(AF_INET, text, &four) == 1 {
        bytes = withUnsafeBytes(of: four) { Array($0) }
      } else if inet_pton(AF_INET6, text, &six) == 1 {
        bytes = withUnsafeBytes(of: six) { Array($0) }
      } else {
        return nil
      }
    }

    /// Whether the address is globally reachable by the registries of special-purpose addresses (RFC 6890), and so is the
    /// IPv4 address inside of it.
    ///
    /// Multicast, documentation and reserved blocks are not public either: no file is served from them.
    var isPublic: Bool {
      if let inner = embeddedIPv4 { return inner.isPublic && !isLocalTranslation }
      let blocks = bytes.count == 4 ? Self.specialIPv4 : Self.specialIPv6
      if blocks.contains(where: { $0.contains(bytes) }) { return false }
      // Only 2000::/3 is in use for hosts.
      return bytes.count == 4 || bytes[0] & 0xE0 == 0x20
    }

    /// 64:ff9b:1::/48 (RFC 8215) translates to addresses of the local network.
    private var isLocalTranslation: Bool { Block("64:ff9b:1::", 48).contains(bytes) }

    /// The IPv4 address that an IPv6 address leads to: mapped (RFC 4291 §2.5.5.2), translated by
    /// NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056).
    private var embeddedIPv4: NetworkAddress? {
      guard bytes.count == 16 else { return nil }
      let last = [UInt8](bytes[12...])
      if Block("::ffff:0:0", 96).contains(bytes) { return NetworkAddress(last) }
      if Block("::ffff:0:0:0", 96).contains(bytes) { return NetworkAddress(last) }
      if Block("64:ff9b::", 96).contains(bytes) || isLocalTranslation { return NetworkAddress(last) }
      if Block("2002::", 16).contains(bytes) { return NetworkAddress([UInt8](bytes[2..<6])) }
      return nil
    }

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The usual text of the address.
    var description: String {
      if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
      var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
      guard bytes.withUnsafeBytes({ inet_ntop(AF_INET6, $0.baseAddress, &text, socklen_t(INET6_ADDRSTRLEN)) }) != nil
      else { return "an IPv6 address" }
      return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private struct Block {
      let prefix: [UInt8]
      let length: Int

      init(_ text: String, _ length: Int) {
        prefix = NetworkAddress(text)?.bytes ?? []
        self.length = length
      }

      func contains(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == prefix.count else { return false }
        let whole = length / 8
        guard bytes[..<whole].elementsEqual(prefix[..<whole]) else { return false }
        let rest = length % 8
        return rest == 0 || (bytes[whole] ^ prefix[whole]) >> (8 - rest) == 0
      }
    }

    /// IANA's registry of IPv4 special-purpose addresses, and multicast.
    private static let specialIPv4 = [
      Block("0.0.0.0", 8), Block("10.0.0.0", 8), Block("100.64.0.0", 10), Block("127.0.0.0", 8),
      Block("169.254.0.0", 16), Block("172.16.0.0", 12), Block("192.0.0.0", 24), Block("192.0.2.0", 24),
      Block("192.88.99.0", 24), Block("192.168.0.0", 16), Block("198.18.0.0", 15), Block("198.51.100.0", 24),
      Block("203.0.113.0", 24), Block("224.0.0.0", 4), Block("240.0.0.0", 4),
    ]

    /// The parts of 2000::/3 in IANA's registry of IPv6 special-purpose addresses.
    private static let specialIPv6 = [
      Block("2001::", 23), Block("2001:db8::", 32), Block("3fff::", 20),
    ]
  }
#endif
