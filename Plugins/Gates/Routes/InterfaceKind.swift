/// What is known about the medium of a network interface.
package enum InterfaceKind: Sendable, Hashable {
  case wifi
  case ethernet
  /// Mobile networks: 2G to 5G.
  case cellular
  /// Another known medium, such as Bluetooth or InfiniBand.
  case other
  /// A VPN or another tunnel. Its packets leave over an interface that is not known here.
  case tunnel
  /// A virtual device, such as one end of a container's cable (veth) or a bridge. What is behind it is not known.
  case virtual
  case loopback
  /// Nothing is known.
  case unknown
}
