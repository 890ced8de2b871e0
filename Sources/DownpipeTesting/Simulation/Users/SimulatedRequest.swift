import DownpipeCore
import Foundation

/// The requests of simulated users.
enum SimulatedRequest {
  /// The key in the metadata of requests that expect a digest, by which servers know that wrong bytes will be noticed.
  static let digestKey = "simulation.digest"

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
}
