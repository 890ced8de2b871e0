/// The bounds of what clients can make a server hold.
package struct ServerLimits: Sendable, Hashable {
  /// The most connections at a time; further ones are closed at once.
  package var connections = 256
  /// The most connections of one address.
  package var connectionsPerAddress = 128
  /// The most bytes of the body of a request, and of a message of a socket.
  package var requestBytes = 2 << 20
  /// The longest time from the beginning of a connection, or from the last reply, to the end of the next request.
  package var requestTime: Duration = .seconds(75)
  /// The longest time without progress while the client takes a reply.
  package var replyTime: Duration = .seconds(60)
  /// The most bytes that wait for a socket that does not read; it is closed then.
  package var waitingBytes = 1 << 20
  /// The time between two pings of a socket. One that has not answered for three of them is closed.
  package var pingInterval: Duration = .seconds(30)

  package init() {}
}
