import Synchronization

/// A request to the server, with its whole body.
package struct ServerRequest: Sendable {
  package var method: String
  /// The path as it was sent, without the query.
  package var path: String
  /// What follows the question mark, as it was sent; `nil` without one.
  package var query: String?
  package var fields: [(name: String, value: String)]
  package var body: [UInt8]
  /// The connection that the request came over.
  package let connection: ServerConnection

  package init(
    method: String, target: String, fields: [(name: String, value: String)] = [], body: [UInt8] = [],
    connection: ServerConnection
  ) {
    let mark = target.firstIndex(of: "?")
    self.method = method
    path = String(target[..<(mark ?? target.endIndex)])
    query = mark.map { String(target[target.index(after: $0)...]) }
    self.fields = fields
    self.body = body
    self.connection = connection
  }

  /// The values of a field, in order. Names are compared without regard to case.
  package func values(_ name: String) -> [String] {
    let name = name.lowercased()
    return fields.filter { $0.name.lowercased() == name }.map(\.value)
  }

  /// The only value of a field; `nil` if there is none, or more than one.
  package func value(_ name: String) -> String? {
    let values = values(name)
    return values.count == 1 ? values[0] : nil
  }
}

/// What a server knows of a connection.
package final class ServerConnection: Sendable {
  /// The address of the client, without its port; `nil` for a socket in the file system.
  package let client: String?
  private let trust = Atomic(false)

  package init(client: String?) { self.client = client }

  /// Whether a request over this connection had a valid token.
  package var isTrusted: Bool { trust.load(ordering: .relaxed) }

  package func setTrusted() { trust.store(true, ordering: .relaxed) }
}

/// The reply to a request.
package struct ServerReply: Sendable {
  package enum Body: Sendable {
    case bytes([UInt8])
    /// Chunks of a length that is not known. The server asks for the next one when the client has taken the last one.
    case stream(@Sendable () async -> [UInt8]?)
  }

  package var status: Int
  package var fields: [(name: String, value: String)]
  package var body: Body
  /// Whether the connection ends with the reply.
  package var isLast = false

  package init(
    _ status: Int, type: String? = nil, fields: [(name: String, value: String)] = [], _ body: [UInt8] = []
  ) {
    self.status = status
    self.fields = fields + (type.map { [("Content-Type", $0)] } ?? [])
    self.body = .bytes(body)
  }

  package init(_ status: Int, text: String) {
    self.init(status, type: "text/plain; charset=utf-8", Array(text.utf8))
  }
}
