#if LIBCURL
  package import CCurl
  package import DownpipeCore

  /// One request, as a thread sends it.
  package struct Order: Sendable {
    package typealias ID = UInt64

    let id: ID
    /// The URL as it goes on the wire.
    let url: String
    /// Entries for libcurl's table of names: `host:port:address,address`.
    let addresses: [String]
    let deadline: ContinuousClock.Instant?
    /// Whether the server may be shown the certificate of the settings, because the user has named its origin.
    let showsCertificate: Bool
    /// Checked once there is a connection.
    let lease: RequestLease
    /// What the protocol of the URL adds.
    let request: any ProtocolRequest

    package init(
      id: ID, url: String, addresses: [String] = [], deadline: ContinuousClock.Instant? = nil,
      showsCertificate: Bool = false, lease: RequestLease = .unlimited, request: any ProtocolRequest
    ) {
      self.id = id
      self.url = url
      self.addresses = addresses
      self.deadline = deadline
      self.showsCertificate = showsCertificate
      self.lease = lease
      self.request = request
    }
  }

  /// The part of a request that belongs to its protocol, such as header fields.
  package protocol ProtocolRequest: Sendable {
    func makeHandler() -> any ProtocolHandler
  }

  /// What a protocol does in a transfer: it sets options, finds the head of the reply, and interprets the end.
  ///
  /// A transfer has a handler of its own, which is used on the thread of its thread only. Bytes of the body do not pass
  /// through it.
  package protocol ProtocolHandler: AnyObject {
    /// Whether another transfer may use the handle, after `curl_easy_reset`.
    var leavesCleanHandle: Bool { get }
    /// Whether bodies come over connections of their own, which are made after the first one.
    var opensDataConnections: Bool { get }
    /// Whether libcurl waits for the server within one call at some point, so that a cancellation has to shut its
    /// connections down.
    var waitsWithinCalls: Bool { get }

    /// Sets the options of the protocol. Those of every protocol are set already.
    func prepare(_ handle: EasyHandle, for transfer: CurlTransfer) throws(DownloadError)

    /// Takes a line that the server sends before, or after, the body.
    /// - Returns: Whether the transfer goes on; ``CurlTransfer/stop(_:)`` has the reason.
    func receiveHeader(_ line: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> Bool

    /// Delivers the head, because the first bytes of the body have come without one.
    /// - Returns: Whether the transfer goes on.
    func bodyBegins(in transfer: CurlTransfer) -> Bool

    /// Interprets the end of a transfer that no callback has ended. The head may be delivered now.
    func end(_ code: CURLcode, of transfer: CurlTransfer) -> Result<Void, any Error>

    /// What is known at the end of a body that has ended without an error.
    func bodyEnd(of transfer: CurlTransfer) -> Body.End
  }

  extension ProtocolHandler {
    /// The default: `false`.
    package var waitsWithinCalls: Bool { false }

    /// The default: nothing.
    package func bodyEnd(of transfer: CurlTransfer) -> Body.End { Body.End() }
  }

  /// The head of a reply.
  package struct ResponseHead: Sendable {
    /// The status of HTTP; of other protocols, the code of the last reply, or 0.
    package var status: Int
    /// The header fields, for protocols that have them.
    package var fields: HeaderFields
    /// What protocols without header fields say of the file.
    package var file: FileFacts?
    /// The whole body, if it has come with the head.
    var body: (bytes: [UInt8], end: Body.End)?

    package init(status: Int, fields: HeaderFields = HeaderFields(), file: FileFacts? = nil) {
      self.status = status
      self.fields = fields
      self.file = file
    }

    /// The size and the time of a file, each as far as the server has stated it.
    package struct FileFacts: Sendable, Hashable {
      /// The size of the whole file, in bytes.
      package var size: Int64?
      /// The time of the last change, in seconds since 1970.
      package var modified: Int64?
      /// Whether the requested range begins behind the end of the file, so that there is no body.
      package var isBehindEnd = false

      package init() {}
    }
  }
#endif
