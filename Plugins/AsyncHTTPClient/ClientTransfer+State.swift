#if AsyncHTTPClient
  import AsyncHTTPClient
  import DownpipeCore
  import NIOCore
  import NIOHTTP1

  extension ClientTransfer {
    static let heldBytes = 64 * 1024

    struct Reader {
      var sink: ChunkSink
      var pace: TransferPace
      var continuation: CheckedContinuation<Void, any Error>
      /// Pauses the connection until it is resolved, when the transfer is too fast for its pace.
      var paused: EventLoopPromise<Void>?
    }

    /// The part of a body that arrived before it is read.
    struct Held {
      var parts: [ByteBuffer] = []
      var bytes = 0
      /// Pauses the connection until it is resolved.
      var paused: EventLoopPromise<Void>?
      /// The outcome, once there is one.
      var outcome: Result<Void, any Error>?
      /// The reader, until the event loop starts to push.
      var reader: Reader?
    }

    enum Phase {
      /// The request has not been sent.
      case new
      /// Waiting for the head.
      case asking(CheckedContinuation<HTTPResponseHead, any Error>)
      /// The head has arrived and the body is not being read.
      case holding(Held)
      /// Parts go to the sink.
      case pushing(Reader)
      /// Reads at most this many more bytes and drops them.
      case draining(Int, CheckedContinuation<Void, Never>)
      /// Over; the error is for later attempts to read.
      case finished(any Error)
    }

    struct State {
      var phase = Phase.new
      var task: HTTPClient.Task<Void>?
      /// The reason to end, set once. It replaces the errors that the transport reports as a consequence.
      var stopReason: (any Error)?
      var received: Int64 = 0
    }
  }
#endif
