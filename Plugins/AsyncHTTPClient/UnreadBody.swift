#if AsyncHTTPClient
  import DownpipeCore

  /// A body that has not been read yet. The request ends when the last reference is released.
  final class UnreadBody: Sendable {
    private let exchange: HTTPExchange
    private let pace: TransferPace

    init(_ exchange: HTTPExchange, pace: TransferPace) {
      self.exchange = exchange
      self.pace = pace
    }

    deinit { exchange.abandon() }

    var body: Body {
      Body(
        discard: { self.exchange.cancel(DownloadError(.cancelled, "the body was discarded")) },
        push: { sink in
          // The reply may be released while its body is read; the request must live until the end.
          defer { withExtendedLifetime(self) {} }
          try await self.exchange.push(into: sink, pace: self.pace)
        })
    }
  }
#endif
