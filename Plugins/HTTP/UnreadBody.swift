import DownpipeCore

/// A body nobody has read yet. When the last reference to it goes, the request ends.
final class UnreadBody: Sendable {
  private let exchange: HTTPExchange

  init(_ exchange: HTTPExchange) { self.exchange = exchange }

  deinit { exchange.abandon() }

  /// The body as the core knows it.
  var body: Body {
    Body(
      discard: { self.exchange.cancel(DownloadError(.cancelled, "the body was discarded")) },
      push: { sink in
        // The reply may be gone while its body is read; the request must not.
        defer { withExtendedLifetime(self) {} }
        try await self.exchange.push(into: sink)
      })
  }
}
