import NIOCore
import NIOPosix

/// Ports of loopback.
enum FreePorts {
  /// Ports that nothing listens on.
  static func find(_ count: Int, _ group: any EventLoopGroup) async throws -> [Int] {
    var channels: [any Channel] = []
    for _ in 0..<count {
      channels.append(try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get())
    }
    let ports = channels.compactMap { $0.localAddress?.port }
    for channel in channels { try await channel.close() }
    return ports
  }

  /// Whether a server accepts connections.
  static func isOpen(_ port: Int, _ group: any EventLoopGroup) async -> Bool {
    guard let channel = try? await ClientBootstrap(group: group).connect(host: "127.0.0.1", port: port).get() else {
      return false
    }
    try? await channel.close()
    return true
  }
}
