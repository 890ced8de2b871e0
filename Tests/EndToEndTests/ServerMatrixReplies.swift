import Downpipe
import DownpipeTesting

/// Replies about a file of 100 bytes, for tests of one server.
extension ServerMatrix {
  /// The file of the first reply.
  static let file = DownloadFixtures.pattern(size: 100)
  /// A file that differs from it at each byte.
  static let other = file.map { ~$0 }
  /// A file that differs from it at each byte except the ten that are compared after the first reply.
  static let nearlyOther = Array(other[..<30] + file[30..<40] + other[40...])
  /// The last bytes of the first reply.
  static let cut = ServerMatrixTrace.Note.failed(.network, nil)

  /// The first 40 bytes of a file of 100.
  static func broken(_ headers: HeaderFields = ["ETag": "\"v1\""]) -> ScriptedReply {
    var headers = headers
    headers["Content-Length"] = "100"
    return ScriptedReply([.head(200, headers), .send(Array(file[..<40])), .close])
  }

  /// A 206 whose parts need not agree.
  static func range(
    _ range: String, _ body: [UInt8], tag: String? = "\"v1\"", length: Int? = nil, headers: HeaderFields = []
  ) -> ScriptedReply {
    var headers = headers
    headers["Content-Range"] = "bytes \(range)"
    headers["ETag"] = tag
    headers["Content-Length"] = String(length ?? body.count)
    return ScriptedReply([.head(206, headers), .send(body)])
  }

  /// The reply of a good server.
  static func good(_ bytes: [UInt8], _ tag: String? = "\"v1\"", for request: ScriptedRequest) -> ScriptedReply {
    .file(.bytes(bytes), etag: tag, for: request)
  }

  /// A 206 in chunks.
  static func chunked(_ range: String, _ chunks: [[UInt8]]) -> ScriptedReply {
    var steps: [ScriptedReply.Step] = [
      .head(206, ["ETag": "\"v1\"", "Content-Range": "bytes \(range)", "Transfer-Encoding": "chunked"])
    ]
    for chunk in chunks {
      steps.append(.send(Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]))
    }
    return ScriptedReply(steps + [.send("0\r\n\r\n")])
  }
}
