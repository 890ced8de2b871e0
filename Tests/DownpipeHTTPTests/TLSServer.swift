#if LIBCURL
  import ChildPipe
  import DownpipeCore
  import Foundation

  /// A server on TLS that ends its connections as it is told. It runs in a process of its own, which ends with its
  /// standard input: Python's `ssl` is where a connection can be closed without the closure alert.
  struct TLSServer: Sendable {
    /// How the server answers a request.
    struct Answer: Encodable, Sendable {
      var head = "HTTP/1.1 200 OK\r\n\r\n"
      /// The number of bytes of the body, which are those of ``TLSServer/content``.
      var count: Int
      var after = ""
      /// Whether `close_notify` is sent before the connection is closed.
      var sendsAlert: Bool
      var version = "TLSv1_3"
    }

    static let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

    private static let program = """
      import json, socket, ssl, sys, tempfile, threading
      answers = json.loads(sys.argv[1])
      with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
          file.write(sys.argv[2])
          file.flush()
          contexts = {}
          for version in ["TLSv1_2", "TLSv1_3"]:
              contexts[version] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
              contexts[version].load_cert_chain(file.name)
              contexts[version].maximum_version = ssl.TLSVersion[version]
      content = bytes((i * 31 + (i >> 9)) & 255 for i in range(300000))
      server = socket.create_server(("127.0.0.1", 0), backlog=64)
      print(server.getsockname()[1], flush=True)
      def serve(plain, answer):
          try:
              channel = contexts[answer["version"]].wrap_socket(plain, server_side=True)
              request = b""
              while b"\\r\\n\\r\\n" not in request:
                  more = channel.recv(4096)
                  if not more: return
                  request += more
              channel.sendall(answer["head"].encode() + content[:answer["count"]] + answer["after"].encode())
              if answer["sendsAlert"]: channel = channel.unwrap()
              channel.shutdown(socket.SHUT_WR)
              # Bytes of the client that are not read would reset the connection.
              while plain_recv(channel): pass
          except OSError: pass
          finally: channel.close()
      def plain_recv(channel): return socket.socket.recv(channel, 4096)
      def accept():
          count = 0
          while True:
              plain, _ = server.accept()
              answer = answers[min(count, len(answers) - 1)]
              count += 1
              threading.Thread(target=serve, args=(plain, answer), daemon=True).start()
      threading.Thread(target=accept, daemon=True).start()
      sys.stdin.read()
      import os
      os._exit(0)
      """

    let url: URL
    private let input: FileHandle

    /// Starts a server that gives the first connection the first answer, the second one the next, and all others the last.
    static func start(_ answers: Answer...) async throws -> TLSServer {
      let (process, input, output) = (Process(), try ChildPipe(), try ChildPipe())
      process.executableURL = URL(filePath: "/usr/bin/env")
      let script = String(decoding: try JSONEncoder().encode(answers), as: UTF8.self)
      process.arguments = [
        "python3", "-B", "-c", program, script, TestCertificate.certificate + "\n" + TestCertificate.privateKey,
      ]
      try process.run(input: input, output: output)
      let reading = output.fileHandleForReading
      let line = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          var line = Data()
          while line.last != 0x0A {
            let more = reading.availableData
            if more.isEmpty { break }
            line += more
          }
          continuation.resume(returning: line)
        }
      }
      guard let port = Int(String(decoding: line, as: UTF8.self).dropLast()),
        let url = URL(string: "https://localhost:\(port)/file")
      else {
        throw DownloadError(.network, "the server does not start: these tests need python3, 3.8 or later")
      }
      return TLSServer(url: url, input: input.fileHandleForWriting)
    }

    func stop() { try? input.close() }
  }
#endif
