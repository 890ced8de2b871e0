public import DownpipeCore

/// The reply of a scripted server: steps that are carried out in order.
///
/// ```swift
/// ScriptedReply.file(.pattern(size: 1_000_000), etag: "\"v1\"", for: request)         // behaves well
/// ScriptedReply.file(.pattern(size: 1_000_000), for: request).truncated(after: 1_000) // does not
/// ScriptedReply([.send("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), .close])     // anything at all
/// ```
public struct ScriptedReply: Sendable {
  /// One action of the server.
  public enum Step: Sendable {
    /// Sends a status line and exactly the given header fields.
    case head(Int, HeaderFields)
    /// Sends bytes unchanged.
    case bytes([UInt8])
    /// Sends a range of a content, generated as the client reads.
    case content(ScriptedContent, Range<Int64>)
    /// Waits for a time. Prefer ``hold(_:)``, which does not depend on time.
    case delay(Duration)
    /// Limits the following steps to a number of bytes per second.
    case throttle(bytesPerSecond: Int)
    /// Waits until the test opens the gate.
    case hold(ServerGate)
    /// Calls a closure on the server's thread, which must not block. The bytes of earlier steps have been passed to the
    /// operating system by then.
    case call(@Sendable () -> Void)
    /// Closes the connection in an orderly way (FIN).
    case close
    /// Resets the connection (RST).
    case reset

    /// Sends bytes unchanged.
    public static func send(_ bytes: [UInt8]) -> Step { .bytes(bytes) }
    /// Sends the UTF-8 bytes of a text unchanged.
    public static func send(_ text: String) -> Step { .bytes(Array(text.utf8)) }
    /// Sends a whole content.
    public static func send(_ content: ScriptedContent) -> Step { .content(content, 0..<content.size) }
  }

  /// The steps, in order. The connection then stays open for the next request, unless a step closed it or the request
  /// had `Connection: close`.
  public var steps: [Step]

  /// Creates a reply from steps.
  public init(_ steps: [Step]) { self.steps = steps }

  /// A status with header fields and a body of known length.
  public init(_ status: Int, _ headers: HeaderFields = [], body: ScriptedContent = .bytes([])) {
    var headers = headers
    if headers["Content-Length"] == nil { headers["Content-Length"] = String(body.size) }
    steps = [.head(status, headers)]
    if body.size > 0 { steps.append(.send(body)) }
  }

  /// A status without a body, with an optional `Retry-After`.
  public static func status(_ status: Int, retryAfter: RetryAfter? = nil) -> ScriptedReply {
    var headers = HeaderFields()
    switch retryAfter {
    case .seconds(let seconds): headers["Retry-After"] = String(seconds)
    case .date(let date): headers["Retry-After"] = HTTPDate.string(from: date)
    case nil: break
    }
    return ScriptedReply(status, headers, body: .text("status \(status)\n"))
  }

  /// A redirect whose `Location` is sent unchanged.
  public static func redirect(to location: String, status: Int = 302) -> ScriptedReply {
    ScriptedReply(status, ["Location": location])
  }

  /// A body with the transfer coding chunked (RFC 9112 §7.1), one chunk for each element.
  public static func chunked(_ chunks: [[UInt8]], headers: HeaderFields = []) -> ScriptedReply {
    var headers = headers
    headers["Transfer-Encoding"] = "chunked"
    var steps: [Step] = [.head(200, headers)]
    for chunk in chunks where !chunk.isEmpty {
      steps.append(.send(String(chunk.count, radix: 16) + "\r\n"))
      steps.append(.send(chunk + [0x0D, 0x0A]))
    }
    steps.append(.send("0\r\n\r\n"))
    return ScriptedReply(steps)
  }

  /// Bytes that are not HTTP, then the end of the connection.
  public static var garbage: ScriptedReply {
    ScriptedReply([.send(ScriptedContent.pattern(size: 512, seed: 0x6761_7262_6167_65)), .close])
  }

  /// The end of the connection without a response.
  public static var closed: ScriptedReply { ScriptedReply([.close]) }

  /// Returns a copy that closes or resets the connection after `count` bytes of its body.
  public func truncated(after count: Int64, reset: Bool = false) -> ScriptedReply {
    var left = max(0, count)
    var kept: [Step] = []
    steps: for step in steps {
      switch step {
      case .bytes(let bytes):
        if Int64(bytes.count) <= left {
          kept.append(step)
          left -= Int64(bytes.count)
        } else {
          kept.append(.bytes(Array(bytes.prefix(Int(left)))))
          break steps
        }
      case .content(let content, let range):
        if Int64(range.count) <= left {
          kept.append(step)
          left -= Int64(range.count)
        } else {
          kept.append(.content(content, range.lowerBound..<range.lowerBound + left))
          break steps
        }
      default: kept.append(step)
      }
    }
    return ScriptedReply(kept + [reset ? .reset : .close])
  }

  /// Returns a copy with steps in front.
  public func after(_ first: Step...) -> ScriptedReply { ScriptedReply(first + steps) }

  /// Returns a copy that waits at the gate after the head and `count` bytes of the body.
  public func held(at gate: ServerGate, after count: Int64 = 0) -> ScriptedReply {
    var left = count
    var result: [Step] = []
    var isHeld = false
    for step in steps {
      if case .content(let content, let range) = step, !isHeld {
        let middle = range.lowerBound + min(left, Int64(range.count))
        left -= middle - range.lowerBound
        if left == 0 {
          result += [.content(content, range.lowerBound..<middle), .hold(gate)]
          result.append(.content(content, middle..<range.upperBound))
          isHeld = true
          continue
        }
      }
      result.append(step)
    }
    return ScriptedReply(isHeld ? result : result + [.hold(gate)])
  }

  /// Returns a copy with header fields set in its first head.
  public func setting(_ headers: HeaderFields) -> ScriptedReply {
    var copy = self
    for (index, step) in steps.enumerated() {
      guard case .head(let status, var fields) = step else { continue }
      for field in headers.fields { fields[field.name] = nil }
      fields.fields += headers.fields
      copy.steps[index] = .head(status, fields)
      break
    }
    return copy
  }

  /// A status line and header fields as bytes.
  static func render(_ status: Int, _ headers: HeaderFields) -> [UInt8] {
    let reasons = [
      200: "OK", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified",
      404: "Not Found", 412: "Precondition Failed", 416: "Range Not Satisfiable", 503: "Service Unavailable",
    ]
    var text = "HTTP/1.1 \(status) \(reasons[status] ?? "Scripted")\r\n"
    for field in headers.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}
