import Downpipe
import DownpipeJSON
import Foundation
import Synchronization

#if LIBCURL
  import DownpipeHTTP
#endif

/// Hands downloads over to a server that speaks aria2's JSON-RPC.
struct HandOver: Sendable {
  private let address: String
  private let token: String?
  private let plan: GetPlan
  /// The folder at the server, as it was typed; `nil` for the server's own.
  private let directory: String?
  private let settings: PipelineSettings
  private let isJSON: Bool
  private let isQuiet: Bool
  private let urls: URLStyle
  /// How many downloads one message has. One that is refused does not hold up the others.
  private static let batch = 100

  /// - Throws: ``UsageError`` for an address or a file that cannot be used.
  init(
    to server: String, secretFile: String?, plan: GetPlan, directory: String?, settings: PipelineSettings, isJSON: Bool,
    isQuiet: Bool, urls: URLStyle
  ) throws(UsageError) {
    guard let url = HTTPURL.parse(server), ["http", "https"].contains(url.scheme?.lowercased() ?? ""),
      url.host()?.isEmpty == false, URLText(url).userInfo == nil
    else { throw UsageError("--to: write the address of the server, such as http://nas:6800") }
    let path = URLText(url).path
    address = path.isEmpty || path == "/" ? url.appending(path: "jsonrpc").absoluteString : url.absoluteString
    token = try secretFile.map { file throws(UsageError) in try Self.token(file) }
    self.plan = plan
    self.directory = directory
    self.settings = settings
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.urls = urls
  }

  private static func token(_ file: String) throws(UsageError) -> String {
    let path = try Folder.absolutePath(file)
    guard let bytes = FileManager.default.contents(atPath: path),
      let line = String(decoding: bytes.prefix(65_536), as: UTF8.self).split(whereSeparator: \.isNewline).first
    else { throw UsageError("--to-secret-file: “\(file)” cannot be read, or is empty") }
    return line.trimmingCharacters(in: .whitespaces)
  }

  #if LIBCURL
    /// - Returns: How many downloads the server has refused.
    func run(_ list: URLList?) async throws -> Int {
      var waiting = plan.urls
      var refused = 0
      var configuration = try HTTPSource.Configuration(settings)
      // The server is the user's own, and may be on this machine.
      configuration.maximumRedirects = 0
      let client = RPCClient(address: address, thread: try CurlThread("downpipe.to", configuration.curlSettings))
      do {
        while true {
          while waiting.count >= Self.batch {
            refused += try await send(Array(waiting.prefix(Self.batch)), client)
            waiting.removeFirst(Self.batch)
          }
          guard let more = try await list?.next() else { break }
          waiting += more
        }
        if !waiting.isEmpty { refused += try await send(waiting, client) }
      } catch {
        await client.thread.stop()
        throw error
      }
      await client.thread.stop()
      return refused
    }

    private func send(_ lines: [String], _ client: RPCClient) async throws -> Int {
      var refused = 0
      var sent: [String] = []
      var calls: [[String: Any]] = []
      for text in lines {
        do throws(DownloadError) {
          let request = try plan.request(for: text)
          let places = [URLLine(text).url] + request.mirrors.map(\.absoluteString)
          let parameters: [Any] = (token.map { ["token:\($0)"] } ?? []) + [places, options(request)]
          calls.append(
            ["jsonrpc": "2.0", "id": String(calls.count), "method": "aria2.addUri", "params": parameters])
          sent.append(text)
        } catch {
          refused += 1
          tell(text, error: error.message)
        }
      }
      guard !calls.isEmpty else { return refused }
      let body = try JSONSerialization.data(withJSONObject: calls)
      let reply = try await client.post(Array(body))
      let answers = (try? JSONSerialization.jsonObject(with: Data(reply.body))) as? [[String: Any]] ?? []
      guard reply.status == 200, answers.count == calls.count else {
        throw UsageError(
          "--to: \(client.address.redactedURL) does not reply as a server of aria2's protocol (status \(reply.status))")
      }
      var waiting = Set(sent.indices)
      for answer in answers {
        guard let index = (answer["id"] as? String).flatMap({ Int($0) }), waiting.remove(index) != nil else { continue }
        if let gid = answer["result"] as? String {
          tell(sent[index], gid: gid)
        } else {
          refused += 1
          let message = (answer["error"] as? [String: Any])?["message"] as? String
          tell(sent[index], error: message?.redactingURLs ?? "the server gives no reason")
        }
      }
      refused += waiting.count
      for index in waiting.sorted() { tell(sent[index], error: "the server has not answered: add it again") }
      return refused
    }
  #else
    func run(_ list: URLList?) async throws -> Int {
      throw UsageError("--to needs libcurl, and this downpipe was built without it")
    }
  #endif

  private func options(_ request: DownloadRequest) -> [String: Any] {
    var options: [String: Any] = [:]
    if let directory { options["dir"] = directory }
    options["out"] = plan.outputName
    let fields = request.headers.fields.map { "\($0.name): \($0.value)" }
    if !fields.isEmpty { options["header"] = fields }
    if let digest = plan.digest { options["checksum"] = "\(Self.name(of: digest))=\(digest.hex)" }
    return options
  }

  /// The name of an algorithm as aria2 has it: `sha-256`.
  private static func name(of digest: FileDigest) -> String {
    let name = digest.algorithm.name.lowercased()
    return name.hasPrefix("sha") && !name.hasPrefix("sha-") ? "sha-" + name.dropFirst(3) : name
  }

  private func tell(_ text: String, gid: String) {
    guard !isQuiet else { return }
    let url = urls.text(URLLine(text).url)
    let object: JSONObject = ["event": "handedOver", "id": gid, "url": url]
    try? OutputFile.standardOutput.write(isJSON ? object.json + "\n" : "\(gid.prefix(64).escaped)  \(url.harmless)\n")
  }

  private func tell(_ text: String, error: String) {
    let url = urls.text(URLLine(text).url)
    if isJSON {
      let object: JSONObject = ["event": "refused", "url": url, "message": String(error.prefix(500))]
      try? OutputFile.standardOutput.write(object.json + "\n")
    } else {
      OutputFile.warn("\(url.prefix(200)): \(error.prefix(500))".harmless)
    }
  }
}

#if LIBCURL
  /// Sends messages to a server.
  private final class RPCClient: Sendable {
    let address: String
    let thread: CurlThread
    /// The largest reply that is read: a batch has 100 short ones.
    private static let longestReply: Int64 = 4 << 20

    init(address: String, thread: CurlThread) {
      self.address = address
      self.thread = thread
    }

    func post(_ bytes: [UInt8]) async throws -> (status: Int, body: [UInt8]) {
      let order = HTTPOrder(
        .post, fields: ["Content-Type": "application/json", "Accept": "application/json"], body: Message(bytes: bytes))
      let response = PendingResponse(thread, of: self)
      let head = try await response.start { [address] id in Order(id: id, url: address, request: order) }
      let body = Mutex<[UInt8]>([])
      try await response.push(
        into: { chunk in body.withLock { list in chunk.withUnsafeBytes { list.append(contentsOf: $0) } } },
        pace: .unlimited, limit: Self.longestReply)
      return (head.status, body.withLock { $0 })
    }

    private struct Message: RequestBody {
      let bytes: [UInt8]
      var byteCount: Int64 { Int64(bytes.count) }

      func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        let count = min(buffer.count, max(0, bytes.count - Int(offset)))
        guard count > 0 else { return 0 }
        bytes[Int(offset)..<(Int(offset) + count)].withUnsafeBytes { buffer.copyMemory(from: $0) }
        return count
      }
    }
  }
#endif
