import DownpipeCore
import Foundation

/// The requests of simulated users.
enum SimulatedRequest {
  /// The key in the metadata of requests that expect a digest, by which servers know that wrong bytes will be noticed.
  static let digestKey = "simulation.digest"

  /// All numbers of downloads.
  static let numbers = 0..<32

  static func id(_ number: Int) -> DownloadID { DownloadID("d\(number)") }

  static func url(_ server: SimulatedServer, _ file: SimulatedFile) -> URL {
    var parts = URLComponents()
    (parts.scheme, parts.host, parts.path) = ("https", server.host, file.path)
    return parts.url ?? URL(filePath: "/")
  }

  /// The files of a world, in order.
  static func urls(in world: SimulatedWorld) -> [URL] {
    world.servers.flatMap { server in server.files.map { url(server, $0) } }
  }

  /// The URLs of other servers that have the same file, in the order of the world.
  static func copies(of url: URL, in world: SimulatedWorld) -> [URL] {
    let files = world.servers.flatMap { server in
      server.files.map { (url: Self.url(server, $0), original: $0.copyOf ?? server.host + $0.path) }
    }
    guard let original = files.first(where: { $0.url == url })?.original else { return [] }
    return files.filter { $0.original == original && $0.url != url }.map(\.url)
  }
}
