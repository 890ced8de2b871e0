#if os(Linux)
  import DownpipeCore
  import Foundation
  import Glibc
  import Synchronization

  /// A network namespace, and the cable (veth) that connects it to this one.
  ///
  /// Real TCP runs over it, and the kernel reacts as it does to a pulled cable.
  struct Cable: Sendable {
    /// The address at this end, where servers listen.
    let nearAddress: String
    /// The network of both ends.
    private let subnet: String
    private let farAddress: String
    private let namespace: String
    private let near: String
    private let far = "cable"

    private static let count = Atomic(0)

    private init() {
      let number = Self.count.add(1, ordering: .relaxed).newValue
      // 198.18.0.0/15 is for tests of networks (RFC 2544); one of its 32,768 networks of four addresses.
      let network = (Int(getpid()) &* 8 &+ number) % 32_768 * 4
      func address(_ host: Int) -> String {
        "198.\(18 + (network >> 16)).\((network >> 8) & 255).\((network & 255) + host)"
      }
      nearAddress = address(1)
      farAddress = address(2)
      subnet = address(0) + "/30"
      namespace = "downpipe-\(getpid())-\(number)"
      near = "dp\(getpid())-\(number)"
    }

    /// Creates a cable, and removes it when `body` has ended.
    /// - Throws: what `body` throws; `DownloadError` with `.permission` where it is not allowed.
    static func with(_ body: (Cable) async throws -> Void) async throws {
      let cable = Cable()
      let result: Result<Void, any Error>
      do {
        try await cable.lay()
        result = .success(try await body(cable))
      } catch {
        result = .failure(error)
      }
      _ = try? await Command("ip", ["link", "del", cable.near]).run()
      _ = try? await Command("ip", ["netns", "del", cable.namespace]).run()
      try result.get()
    }

    private func lay() async throws {
      try await RootAccess.run("ip", ["netns", "add", namespace])
      try await ip("link add \(near) type veth peer name \(far) netns \(namespace)")
      try await ip("addr add \(nearAddress)/30 dev \(near)")
      try await ip("link set \(near) up")
      try await inside("addr add \(farAddress)/30 dev \(far)")
      try await inside("link set lo up")
      try await inside("link set \(far) up")
    }

    private func ip(_ line: String) async throws {
      try await RootAccess.run("ip", line.split(separator: " ").map(String.init))
    }

    private func inside(_ line: String) async throws { try await ip("-n \(namespace) " + line) }

    /// Starts a program at the far end, and ends it if it hangs.
    var launcher: [String] { ["ip", "netns", "exec", namespace, "timeout", "-k", "1", "\(Command.hangLimit)"] }

    /// The far interface goes down: there is no route, and open connections are not told.
    func unplug() async throws { try await inside("link set \(far) down") }
    func plug() async throws { try await inside("link set \(far) up") }

    /// The route is removed and the link stays: packets of the near end still arrive.
    func loseRoute() async throws { try await inside("route del \(subnet) dev \(far)") }
    func findRoute() async throws { try await inside("route add \(subnet) dev \(far)") }

    /// Ends the connections of the far end, as systems do after a change of networks.
    func abortConnections() async throws {
      try await RootAccess.run("ip", ["netns", "exec", namespace, "ss", "-K", "dst", nearAddress])
    }
  }
#endif
