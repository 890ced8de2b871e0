import Downpipe
import DownpipeTesting
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where a server of this machine listens: requests are sent to it one a connection, byte for byte as they are given.
enum LocalPlace: Sendable, Hashable {
  case port(Int)
  /// The path of a socket in the file system.
  case unix(String)

  struct Reply: Sendable {
    let status: Int
    /// The values by the names in lower case.
    let fields: [String: String]
    let body: [UInt8]
    #if RPC
      /// The body, if it is JSON.
      var json: JSON? { try? JSONDecoder().decode(JSON.self, from: Data(body)) }
    #endif
  }

  /// Sends a request, and waits for its reply, on a thread of its own.
  /// - Throws: `DownloadError` with `.network` if there is none.
  func send(_ method: String, _ target: String, _ body: Data = Data()) async throws -> Reply {
    let head = """
      \(method) \(target) HTTP/1.1\r
      Host: localhost\r
      Connection: close\r
      Content-Length: \(body.count)\r
      \r

      """
    let request = Array(head.utf8) + Array(body)
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try exchange(request) }) }
    }
  }

  private func exchange(_ request: [UInt8]) throws -> Reply {
    let descriptor = try connection()
    defer { close(descriptor) }
    var sent = 0
    while sent < request.count {
      let count = request[sent...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { throw DownloadError(.network, "the server does not take the request: errno \(errno)") }
      sent += count
    }
    var reply: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      if let whole = Self.parse(reply, isAtEnd: false) { return whole }
      let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { break }
      reply += buffer[..<count]
    }
    guard let whole = Self.parse(reply, isAtEnd: true) else {
      throw DownloadError(.network, "the server has broken off: \(String(decoding: reply.prefix(500), as: UTF8.self))")
    }
    return whole
  }

  /// - Returns: `nil` for a reply that is not complete.
  static func parse(_ bytes: [UInt8], isAtEnd: Bool) -> Reply? {
    guard let (head, end) = parseHead(bytes) else { return nil }
    let body = Array(bytes[end...])
    guard let length = head.fields["content-length"].flatMap({ Int($0) }) else {
      return isAtEnd ? Reply(status: head.status, fields: head.fields, body: body) : nil
    }
    guard body.count >= length else { return nil }
    return Reply(status: head.status, fields: head.fields, body: Array(body.prefix(length)))
  }

  /// - Returns: A reply without its body, and where that begins; `nil` for a head that is not complete.
  static func parseHead(_ bytes: [UInt8]) -> (head: Reply, end: Int)? {
    guard let end = Data(bytes).firstRange(of: Data("\r\n\r\n".utf8)) else { return nil }
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count > 1, let status = Int(words[1]) else { return nil }
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
      fields[line[..<colon].lowercased()] = value
    }
    return (Reply(status: status, fields: fields, body: []), end.upperBound)
  }

  /// Connects.
  /// - Parameter prepare: Changes the descriptor of the socket before.
  func connection(prepare: (Int32) -> Void = { _ in }) throws -> Int32 {
    #if canImport(Glibc)
      let stream = Int32(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    let descriptor: Int32
    let result: Int32
    switch self {
    case .port(let port):
      descriptor = socket(AF_INET, stream, 0)
      prepare(descriptor)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      address.sin_port = UInt16(port).bigEndian
      result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    case .unix(let path):
      descriptor = socket(AF_UNIX, stream, 0)
      prepare(descriptor)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
      result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
    }
    guard result == 0 else {
      let code = errno
      if descriptor >= 0 { close(descriptor) }
      throw DownloadError(.network, "nothing listens at \(self): errno \(code)")
    }
    // A server that hangs fails the test.
    var limit = timeval()
    limit.tv_sec = time_t(Command.hangLimit)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    return descriptor
  }
}
