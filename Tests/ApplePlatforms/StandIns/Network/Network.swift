// The declarations of Apple's Network framework that Downpipe uses, as its Swift interface has them:
// https://developer.apple.com/documentation/network/nwpathmonitor. A test gives the monitors their paths.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Synchronization

public struct NWInterface: Hashable, Sendable {
  public enum InterfaceType: Hashable, Sendable {
    case other
    case wifi
    case cellular
    case wiredEthernet
    case loopback
  }

  public let type: InterfaceType
  public let name: String

  /// Not there: for tests.
  public init(_ type: InterfaceType, name: String) {
    self.type = type
    self.name = name
  }
}

public struct NWPath: Hashable, Sendable {
  public enum Status: Hashable, Sendable {
    case satisfied
    case unsatisfied
    case requiresConnection
  }

  public enum UnsatisfiedReason: Hashable, Sendable {
    case notAvailable
    case cellularDenied
    case wifiDenied
    case localNetworkDenied
    case vpnInactive
  }

  public let status: Status
  public let availableInterfaces: [NWInterface]
  public let isExpensive: Bool
  public let isConstrained: Bool
  public let unsatisfiedReason: UnsatisfiedReason

  /// Not there: for tests.
  public init(
    _ status: Status, _ interfaces: [NWInterface] = [], isExpensive: Bool = false, isConstrained: Bool = false,
    reason: UnsatisfiedReason = .notAvailable
  ) {
    self.status = status
    availableInterfaces = interfaces
    self.isExpensive = isExpensive
    self.isConstrained = isConstrained
    unsatisfiedReason = reason
  }
}

/// A sequence since macOS 14 and iOS 17.
public final class NWPathMonitor: AsyncSequence, Sendable {
  public typealias Element = NWPath
  public typealias Failure = Never

  public struct Iterator: AsyncIteratorProtocol {
    var paths: AsyncStream<NWPath>.Iterator

    public mutating func next() async -> NWPath? { await paths.next() }
    public mutating func next(isolation actor: isolated (any Actor)?) async -> NWPath? {
      await paths.next(isolation: actor)
    }
  }

  private let paths: AsyncStream<NWPath>

  public init() { paths = Self.paths }

  public func makeAsyncIterator() -> Iterator { Iterator(paths: paths.makeAsyncIterator()) }

  /// Not there: the paths that the monitors of a test's task report.
  @TaskLocal public static var paths = AsyncStream<NWPath> { _ in }
}
