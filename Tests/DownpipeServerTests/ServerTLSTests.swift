#if RPCTLS
  import ChildPipe
  import DownpipeServer
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  /// A server with a certificate, and curl as its client.
  @Suite(.endsHangs)
  struct ServerTLSTests {
    private struct Page: ServerHandler {
      func reply(to request: ServerRequest) async -> ServerReply {
        ServerReply(200, text: "\(request.method) \(request.path) \(request.body.count)")
      }
    }

    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func run(_ program: String, _ arguments: [String]) async throws -> (status: Int32, output: String) {
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = [program] + arguments
      let output = try ChildPipe()
      process.standardError = FileHandle.nullDevice
      let status = Watched<Int32?>(nil)
      process.terminationHandler = { process in
        let code = process.terminationStatus
        status.update { $0 = code }
      }
      try process.run(output: output)
      await status.wait { $0 != nil }
      let data = try output.fileHandleForReading.readToEnd() ?? Data()
      return (status.value ?? -1, String(decoding: data, as: UTF8.self))
    }

    /// Makes a certificate that signs itself, with its key, and returns their paths.
    private func makeCertificate(_ name: String) async throws -> (certificate: String, key: String) {
      let (certificate, key) = (folder.path("\(name).pem"), folder.path("\(name)-key.pem"))
      let made = try await run(
        "openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
          "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ])
      try #require(made.status == 0, "openssl is needed")
      return (certificate, key)
    }

    private func withServer(_ tls: ServerTLS, _ body: (Int) async throws -> Void) async throws {
      let server = try await HTTPServer(.tcp(host: "127.0.0.1", port: 0), tls: tls, handler: Page())
      let port = try #require(server.port)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await server.run() }
        try await body(port)
        group.cancelAll()
      }
    }

    private func get(_ port: Int, trusting certificate: String, _ options: [String] = []) async throws -> (
      status: Int32, output: String
    ) {
      let place = ["--resolve", "localhost:\(port):127.0.0.1", "https://localhost:\(port)/page"]
      return try await run("curl", ["-sS", "--cacert", certificate] + options + place)
    }

    @Test("clients that trust the certificate are served, large bodies too, and an old TLS is refused")
    func served() async throws {
      let (certificate, key) = try await makeCertificate("first")
      try await withServer(try ServerTLS(certificate: certificate, key: key)) { port in
        let reply = try await get(port, trusting: certificate)
        #expect(reply.output == "GET /page 0")
        let body = folder.path("body")
        try Data(count: 2 << 20).write(to: URL(filePath: body))
        let posted = try await get(port, trusting: certificate, ["--data-binary", "@" + body])
        #expect(posted.output == "POST /page \(2 << 20)")
        let old = try await get(port, trusting: certificate, ["--tls-max", "1.1"])
        #expect(old.status == 35)
        let plain = try await run("curl", ["-sS", "http://127.0.0.1:\(port)/page"])
        #expect(plain.status != 0)
        #expect(plain.output == "")
        let again = try await get(port, trusting: certificate)
        #expect(again.output == "GET /page 0")
      }
    }

    @Test("a renewed certificate is used without a restart, and files that cannot be used change nothing")
    func renewed() async throws {
      let (certificate, key) = try await makeCertificate("first")
      let (newCertificate, newKey) = try await makeCertificate("second")
      let old = folder.path("old.pem")
      try FileManager.default.copyItem(atPath: certificate, toPath: old)
      let reports = Watched<[String]>([])
      let tls = try ServerTLS(certificate: certificate, key: key) { report in reports.update { $0.append(report) } }
      try await withServer(tls) { port in
        // The certificate has been written, and its key has not yet.
        _ = try await run("mv", [newCertificate, certificate])
        tls.refresh()
        tls.refresh()
        #expect(reports.value.count == 1)
        #expect(reports.value.first?.contains("does not belong to") == true)
        let former = try await get(port, trusting: old)
        #expect(former.status == 0)
        _ = try await run("mv", [newKey, key])
        tls.refresh()
        let distrusted = try await get(port, trusting: old)
        #expect(distrusted.status == 60)
        let renewed = try await get(port, trusting: certificate)
        #expect(renewed.output == "GET /page 0")
      }
    }

    @Test("files that cannot be used are told")
    func unusable() async throws {
      let (certificate, key) = try await makeCertificate("first")
      let (_, otherKey) = try await makeCertificate("second")
      func message(_ certificate: String, _ key: String) -> String {
        do {
          _ = try ServerTLS(certificate: certificate, key: key)
          return "none"
        } catch { return "\(error)" }
      }
      #expect(message(certificate, key) == "none")
      #expect(message(certificate, otherKey).contains("does not belong to"))
      #expect(message(key, key).contains("not a certificate"))
      #expect(message(certificate, certificate).contains("can read the private key"))
      #expect(message(folder.path("nothing"), key).contains("not a certificate"))
      _ = try await run("chmod", ["644", key])
      #expect(message(certificate, key).contains("everyone can read"))
    }
  }
#endif
