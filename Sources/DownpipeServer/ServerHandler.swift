/// What a server does.
package protocol ServerHandler: Sendable {
  /// Replies to a request. Requests over one connection come one after the other.
  func reply(to request: ServerRequest) async -> ServerReply
  /// Whether a request for a socket (RFC 6455) is accepted. If not, ``reply(to:)`` gets it.
  func acceptsSocket(_ request: ServerRequest) -> Bool
  /// Works on a message of a socket. Messages of one socket come one after the other.
  /// - Throws: an error to close the socket.
  func receive(_ message: [UInt8], from socket: ServerSocket, for request: ServerRequest) async throws
  /// A socket has ended.
  func closed(_ socket: ServerSocket)
}

extension ServerHandler {
  package func acceptsSocket(_ request: ServerRequest) -> Bool { false }
  package func receive(_ message: [UInt8], from socket: ServerSocket, for request: ServerRequest) async throws {}
  package func closed(_ socket: ServerSocket) {}
}
