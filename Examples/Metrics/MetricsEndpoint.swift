import NIOCore
import NIOHTTP1
import NIOPosix

/// An HTTP server that replies to `GET /metrics` with a text.
struct MetricsEndpoint: Sendable {
  private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

  /// The port on the loopback interface.
  let port: Int
  private let task: Task<Void, Never>

  /// Starts to listen.
  init(port: Int, text: @escaping @Sendable () -> String) async throws {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .bind(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          return try Connection(wrappingChannelSynchronously: channel)
        }
      }
    self.port = server.channel.localAddress?.port ?? port
    task = Task {
      try? await server.executeThenClose { connections in
        try await withThrowingDiscardingTaskGroup { group in
          for try await connection in connections {
            // A client that disconnects concerns only its own connection.
            group.addTask { try? await Self.serve(connection, text) }
          }
        }
      }
    }
  }

  func shutdown() async {
    task.cancel()
    await task.value
  }

  private static func serve(_ connection: Connection, _ text: @Sendable () -> String) async throws {
    try await connection.executeThenClose { requests, replies in
      var isKnown = false
      for try await part in requests {
        switch part {
        case .head(let head): isKnown = head.method == .GET && head.uri == "/metrics"
        case .body: break
        case .end:
          let body = ByteBuffer(string: isKnown ? text() : "")
          let fields: HTTPHeaders = [
            "Content-Type": "text/plain; version=0.0.4", "Content-Length": "\(body.readableBytes)",
          ]
          let head = HTTPResponseHead(version: .http1_1, status: isKnown ? .ok : .notFound, headers: fields)
          try await replies.write(contentsOf: [.head(head), .body(.byteBuffer(body)), .end(nil)])
        }
      }
    }
  }
}
