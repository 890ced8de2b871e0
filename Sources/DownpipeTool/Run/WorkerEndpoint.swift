import ArgumentParser
import Foundation

#if Postgres
  import NIOCore
  import NIOHTTP1
  import NIOPosix
#endif

/// An HTTP server for the few questions of a monitor.
struct WorkerEndpoint: Sendable {
  /// Where it listens.
  struct Address: ExpressibleByArgument, Sendable, Hashable {
    var host: String
    var port: Int

    /// A port, or an address and a port: `9464`, `0.0.0.0:9464`, `[::1]:9464`.
    init?(argument: String) {
      let colon = argument.lastIndex(of: ":")
      host = colon.map { String(argument[..<$0]) } ?? "127.0.0.1"
      if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
      let digits = colon.map { argument[argument.index(after: $0)...] } ?? argument[...]
      guard !host.isEmpty, let port = Int(digits), (0...65_535).contains(port) else { return nil }
      self.port = port
    }
  }

  typealias Answer = @Sendable (_ path: String) async -> (isGood: Bool, text: String)?

  #if Postgres
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    private let server: NIOAsyncChannel<Connection, Never>
    private let answer: Answer

    /// Starts to listen, and says where.
    /// - Throws: ``UsageError`` for an address that cannot be used.
    init(_ address: Address, answer: @escaping Answer) async throws {
      self.answer = answer
      do {
        server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
          .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
          .bind(host: address.host, port: address.port) { channel in
            channel.eventLoop.makeCompletedFuture {
              // Who says nothing, or little and slowly, does not hold a connection for ever.
              let end = channel.eventLoop.scheduleTask(in: Self.longestConnection) { channel.close(promise: nil) }
              channel.closeFuture.whenComplete { _ in end.cancel() }
              try channel.pipeline.syncOperations.configureHTTPServerPipeline()
              return try Connection(wrappingChannelSynchronously: channel)
            }
          }
      } catch {
        throw UsageError("--listen: \(address.host):\(address.port) cannot be used: \(error)")
      }
      OutputFile.warn("listening at http://\(address.host):\(server.channel.localAddress?.port ?? address.port)")
    }

    /// A monitor that keeps its connection opens another one then.
    private static let longestConnection: TimeAmount = .minutes(2)
    /// The largest number of connections at a time; a monitor needs one.
    private static let mostConnections = 64

    /// Replies until the task is cancelled.
    func serve() async {
      try? await server.executeThenClose { connections in
        try await withThrowingTaskGroup(of: Void.self) { group in
          var open = 0
          for try await connection in connections {
            if open >= Self.mostConnections {
              _ = try await group.next()
              open -= 1
            }
            open += 1
            // A client that disconnects concerns only its own connection.
            group.addTask { try? await reply(to: connection) }
          }
        }
      }
    }

    private func reply(to connection: Connection) async throws {
      try await connection.executeThenClose { requests, replies in
        var path: String?
        for try await part in requests {
          switch part {
          case .head(let head):
            path = head.method == .GET ? head.uri.split(separator: "?").first.map(String.init) : nil
          // A monitor sends none.
          case .body: return
          case .end:
            var answer = (isGood: false, text: "not found\n")
            var status = HTTPResponseStatus.notFound
            if let path, let found = await self.answer(path) {
              answer = found
              status = found.isGood ? .ok : .serviceUnavailable
            }
            let body = ByteBuffer(string: answer.text)
            let fields: HTTPHeaders = [
              "Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Content-Length": "\(body.readableBytes)",
            ]
            let head = HTTPResponseHead(version: .http1_1, status: status, headers: fields)
            try await replies.write(contentsOf: [.head(head), .body(.byteBuffer(body)), .end(nil)])
          }
        }
      }
    }
  #else
    init(_ address: Address, answer: @escaping Answer) async throws {
      throw UsageError("--listen: this downpipe was built without a server: build it with the trait Postgres")
    }

    func serve() async {}
  #endif
}
