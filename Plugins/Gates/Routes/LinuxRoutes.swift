#if os(Linux)
  package import DownpipeCore
  package import DownpipePOSIX
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// The tables of the kernel: routes from `/proc/net`, links and addresses from `getifaddrs`, kinds of interfaces from
  /// `/sys/class/net`, changes from rtnetlink.
  package struct LinuxRoutes: RouteSource {
    /// The bytes read from one table at most: about 16,000 routes.
    private static let sizeLimit = 4 << 20

    private let folder: String
    private let kinds: InterfaceFolder
    private let interfaces: @Sendable () -> InterfaceStates?
    private let openEvents: @Sendable () -> AsyncStream<Void>?

    /// The routes of the process's network namespace.
    package init() {
      self.init(
        folder: "/proc/net", interfaces: InterfaceStates.read, events: { RouteEvents.open().map(RouteEvents.stream) })
    }

    /// The routes in a folder with the layout of `/proc/net`, and the interfaces in one with the layout of
    /// `/sys/class/net`.
    package init(
      folder: String, sysfs: String = InterfaceFolder.system, interfaces: @escaping @Sendable () -> InterfaceStates?,
      events: @escaping @Sendable () -> AsyncStream<Void>?
    ) {
      self.folder = folder
      self.kinds = InterfaceFolder(sysfs)
      self.interfaces = interfaces
      self.openEvents = events
    }

    /// Reads both tables. One may be missing, since a kernel can have only one of the protocols.
    package func read() throws -> RouteTable {
      let ipv4 = try text("route")
      let ipv6 = try text("ipv6_route")
      guard ipv4 != nil || ipv6 != nil else {
        throw DownloadError(
          .network, "\(folder)/route and \(folder)/ipv6_route do not exist: mount /proc, or do not use this gate")
      }
      var table = RouteTable(
        ipv4: ipv4?.text, ipv6: ipv6?.text, isTruncated: ipv4?.isCut ?? false || ipv6?.isCut ?? false)
      if let interfaces = interfaces() {
        table.downInterfaces = interfaces.down
        table.ownAddresses = interfaces.addresses
      }
      for name in Set(table.routes.lazy.compactMap(\.interface)) { table.kinds[name] = kinds.kind(of: name) }
      return table
    }

    package func changes() -> AsyncStream<Void>? { openEvents() }

    /// The error for a table that cannot be read. It is one of the network and not of the disk or of the storage's
    /// folder, unless the process is out of descriptors.
    package static func failure(_ error: SystemError, reading path: String) -> DownloadError {
      if error.isShortageOfDescriptors { return error.downloadError("read", path) }
      return DownloadError(
        .network,
        "could not read \(path): \(String(cString: strerror(error.code))); give the process access to /proc, or do not "
          + "use this gate", cause: error)
    }

    private func text(_ name: String) throws -> (text: String, isCut: Bool)? {
      let path = "\(folder)/\(name)"
      var bytes: [UInt8] = []
      do throws(SystemError) {
        guard let file = try OpenFile.ifPresent(Entry(path), O_RDONLY) else { return nil }
        bytes = try file.read(Self.sizeLimit, at: 0)
      } catch {
        throw Self.failure(error, reading: path)
      }
      if bytes.count < Self.sizeLimit { return (String(decoding: bytes, as: UTF8.self), false) }
      // The last line may be incomplete and would then be parsed as another route.
      let whole = bytes.lastIndex(of: 0x0A).map { bytes[..<$0] } ?? []
      return (String(decoding: whole, as: UTF8.self), true)
    }
  }

  /// The properties of network interfaces that routing needs.
  package struct InterfaceStates: Sendable, Hashable {
    /// The interfaces that are down or have no link.
    package var down: Set<String>
    /// The addresses of the machine.
    package var addresses: Set<IPAddress>

    package init(down: Set<String> = [], addresses: Set<IPAddress> = []) {
      self.down = down
      self.addresses = addresses
    }

    /// Reads the interfaces from the system; `nil` when that fails.
    package static func read() -> InterfaceStates? {
      var list: UnsafeMutablePointer<ifaddrs>?
      guard getifaddrs(&list) == 0 else { return nil }
      defer { freeifaddrs(list) }
      // The kernel sets IFF_RUNNING (0x40) while the link works, and where the state is unknown (RFC 2863).
      let upAndRunning: UInt32 = 0x41
      var result = InterfaceStates()
      var next = list
      while let entry = next?.pointee {
        next = entry.ifa_next
        guard let name = entry.ifa_name else { continue }
        if entry.ifa_flags & upAndRunning != upAndRunning { result.down.insert(String(cString: name)) }
        if let address = entry.ifa_addr.flatMap(IPAddress.init(socketAddress:)) { result.addresses.insert(address) }
      }
      return result
    }
  }

  extension IPAddress {
    /// Creates an address from a socket address; `nil` for other families than IPv4 and IPv6.
    fileprivate init?(socketAddress: UnsafeMutablePointer<sockaddr>) {
      let raw = UnsafeRawPointer(socketAddress)
      switch Int32(socketAddress.pointee.sa_family) {
      case AF_INET:
        let bits = raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr
        self.init(family: .v4, bits: UInt128(UInt32(bigEndian: bits)))
      case AF_INET6:
        let address = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
        self.init(bytes: withUnsafeBytes(of: address) { Array($0) })
      default:
        return nil
      }
    }
  }
#endif
