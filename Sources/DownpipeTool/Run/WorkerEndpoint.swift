import ArgumentParser
import DownpipeServer
import Foundation

/// An HTTP server for the few questions of a monitor.
struct WorkerEndpoint: Sendable {
  /// Where it listens: a port, or an address and a port, such as `9464`, `0.0.0.0:9464`, `[::1]:9464`.
  struct Address: ExpressibleByArgument, Sendable, Hashable {
    let listen: ListenAddress

    init?(argument: String) {
      guard let listen = ListenAddress(argument) else { return nil }
      self.listen = listen
    }
  }

  typealias Answer = @Sendable (_ path: String) async -> (isGood: Bool, text: String)?

  #if Postgres || RPC
    private struct Handler: ServerHandler {
      let answer: Answer

      func reply(to request: ServerRequest) async -> ServerReply {
        guard request.method == "GET", let found = await answer(request.path) else {
          return ServerReply(404, text: "not found\n")
        }
        return ServerReply(found.isGood ? 200 : 503, type: PrometheusText.type, Array(found.text.utf8))
      }
    }

    private let server: HTTPServer

    /// Starts to listen, and says where.
    /// - Throws: ``UsageError`` for an address that cannot be used.
    init(_ address: Address, answer: @escaping Answer) async throws {
      var limits = ServerLimits()
      // A monitor needs one, and sends no bodies.
      limits.connections = 64
      limits.connectionsPerAddress = 64
      limits.requestBytes = 0
      do { server = try await HTTPServer(address.listen, limits: limits, handler: Handler(answer: answer)) } catch {
        throw UsageError("--listen: the server cannot listen at \(error)")
      }
      switch address.listen {
      case .tcp(let host, let port): OutputFile.warn("listening at http://\(host):\(server.port ?? port)")
      default: OutputFile.warn("listening at \(address.listen)")
      }
    }

    /// Replies until the task is cancelled.
    func serve() async { await server.run() }
  #else
    init(_ address: Address, answer: @escaping Answer) async throws {
      throw UsageError("--listen: this downpipe was built without a server: build it with the trait Postgres or RPC")
    }

    func serve() async {}
  #endif
}
