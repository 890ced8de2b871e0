#if LIBCURL
  import Downpipe
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// TLS and HTTP/2 with a real nginx, through the library.
    @Suite struct HTTP2Tests {
      @Test(arguments: [HTTPSource.HTTPVersion.automatic, .http1Only])
      func manyFilesOverTLS(version: HTTPSource.HTTPVersion) async throws {
        let folder = try TemporaryFolder()
        let certificate = folder.path("certificate.pem")
        let made = try await Command(
          "openssl",
          [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost", "-keyout", folder.path("key.pem"), "-out", certificate,
          ]
        ).run()
        try #require(made.status == 0, "openssl is needed: \(made.errors)")
        let server = try await NginxServer(certificate: certificate, key: folder.path("key.pem"))
        for index in 0..<20 {
          try server.add("\(index)", DownloadFixtures.pattern(size: 300_000, seed: UInt64(index)))
        }

        let downloader = try await Downloader {
          HTTPSource {
            $0.httpVersion = version
            $0.tls.trustRoots = .only(.file(certificate))
          }
          Limits(concurrent: 8)
          FileStore(folder.path("out"))
        }
        try await downloader.add(
          contentsOf: (0..<20).map { try DownloadRequest("https://localhost:\(server.port)/files/\($0)") })
        try await downloader.waitUntilIdle()
        #expect(try await downloader.counts()[.finished] == 20)
        await downloader.shutdown()
        for index in 0..<20 {
          #expect(try folder.read("out/\(index)") == DownloadFixtures.pattern(size: 300_000, seed: UInt64(index)))
        }
        let requests = try server.requests()
        #expect(requests.count == 20)
        #expect(requests.allSatisfy { $0.contains(version == .automatic ? "HTTP/2.0" : "HTTP/1.1") })
      }
    }
  }
#endif
