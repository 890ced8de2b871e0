import Downpipe
import DownpipeTesting

/// Prints the events of the links.
struct Narrator: Observer {
  let hosts: [CDN]

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      switch event.kind {
      case .started(_, let byte): print("  the server sends the film from byte \(byte)")
      case .refused(let error): print("  \(error.message)")
      case .restarted(let error): print("  starts again: \(error.message)")
      case .attemptFailed(let error) where error.code == .linkExpired || error.code == .httpStatus:
        print("  the link has expired: \(error.message)")
      case .attemptFailed(let error): print("  the connection broke: \(error.message)")
      case .linkRefreshed(let link): print("fresh link at \(host(of: link)): \(link)")
      default: break
      }
    }
  }

  private func host(of link: String) -> String {
    hosts.first { link.contains(":\($0.server.port)/") }?.name ?? "an unknown host"
  }
}
