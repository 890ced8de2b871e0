/// A source of routes: the system, or a fake in tests.
package protocol RouteSource: Sendable {
  /// Reads the current routes, which takes as long as reading a small file.
  func read() throws -> RouteTable

  /// A stream with an element after each change since the call; unread elements are merged. It ends when the system
  /// stops reporting changes. `nil` when the system does not report them.
  func changes() -> AsyncStream<Void>?
}
