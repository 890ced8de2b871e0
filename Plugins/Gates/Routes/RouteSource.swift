/// Where routes are read from: the system, or a fake in tests.
package protocol RouteSource: Sendable {
  /// The routes as they are now. It takes no longer than reading a small file.
  func read() throws -> RouteTable

  /// An element after each change, from the call on; changes that nobody has taken yet become one element.
  /// `nil` when the system does not tell. The sequence ends when the system stops telling.
  func changes() -> AsyncStream<Void>?
}
