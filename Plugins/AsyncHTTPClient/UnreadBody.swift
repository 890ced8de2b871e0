#if AsyncHTTPClient
  import DownpipeCore

  /// A body that has not been read yet. The request ends when the last reference is released.
  final class UnreadBody: Sendable {
    private let transfer: ClientTransfer
    private let pace: TransferPace

    init(_ transfer: ClientTransfer, pace: TransferPace) {
      self.transfer = transfer
      self.pace = pace
    }

    deinit { transfer.abandon() }

    var body: Body {
      Body(
        discard: { self.transfer.cancel(DownloadError(.cancelled, "the body was discarded")) },
        push: { sink in
          // The reply may be released while its body is read; the request must live until the end.
          defer { withExtendedLifetime(self) {} }
          try await self.transfer.push(into: sink, pace: self.pace)
        })
    }
  }
#endif
