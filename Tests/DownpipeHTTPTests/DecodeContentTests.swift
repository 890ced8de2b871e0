#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  @testable import DownpipeHTTP

  @Suite(.timeLimit(.minutes(5)))
  struct DecodeContentTests {
    private static let text = Array("hello, content coding\n".utf8)
    /// `text` in each coding, made by gzip, zlib, brotli and zstd.
    private static let coded: [(coding: String, base64: String)] = [
      ("gzip", "H4sIAAAAAAACA8tIzcnJ11FIzs8rSc0rAdIpmXnpXAAaNXF2FgAAAA=="),
      ("deflate", "eNrLSM3JyddRSM7PK0nNKwHSKZl56VwAXiIH+g=="),
      ("deflate", "y0jNycnXUUjOzytJzSsB0imZeelcAA=="),
      ("br", "HxUA+KUVQMbe9CCFKKKJ5ECXi9iptrMA"),
      ("zstd", "KLUv/QBYsQAAaGVsbG8sIGNvbnRlbnQgY29kaW5nCg=="),
    ]

    private func decode(
      _ bytes: [UInt8], _ coding: String, maximumSize: Int64? = nil, workspace: String? = nil,
      request: DownloadRequest? = nil
    ) async throws -> File {
      let step = try #require(DecodeContent(coding, maximumSize: maximumSize))
      let input = Artifact(location: .memory(bytes), name: "a.txt", size: .known(Int64(bytes.count)))
      return try await step.process(
        File(input),
        in: ProcessingContext(request: try request ?? DownloadRequest("http://a/a.txt"), workspace: workspace))
    }

    @Test(arguments: coded)
    func decodes(_ coding: String, _ base64: String) async throws {
      let bytes = Array(try #require(Data(base64Encoded: base64)))
      let decoded = try await decode(bytes, coding)
      #expect(try decoded.artifact.readBytes() == Self.text)
      #expect(decoded.artifact.size == .known(Int64(Self.text.count)))
      let folder = try TemporaryFolder()
      let file = try await decode(bytes, coding, workspace: folder.path)
      #expect(file.name == "a.txt")
      #expect(try file.artifact.readBytes() == Self.text)
    }

    @Test(arguments: coded)
    func bytesThatEndTooEarlyAreAnError(_ coding: String, _ base64: String) async throws {
      let bytes = Array(try #require(Data(base64Encoded: base64)))
      let folder = try TemporaryFolder()
      let error = await downloadError {
        try await decode(Array(bytes.dropLast(9)), coding, workspace: folder.path)
      }
      #expect(error?.code == .processing)
      #expect(try folder.contents().isEmpty)
    }

    @Test func otherBytesAreAnError() async throws {
      let error = await downloadError { try await decode(Self.text, "gzip") }
      #expect(error?.code == .processing)
    }

    @Test func theOutputIsLimited() async throws {
      let bytes = Array(try #require(Data(base64Encoded: Self.coded[0].base64)))
      let ofTheSource = await downloadError { try await decode(bytes, "gzip", maximumSize: 21) }
      #expect(ofTheSource?.code == .tooLarge)
      let request = try DownloadRequest("http://a/a.txt", maximumSize: 21)
      let ofTheRequest = await downloadError { try await decode(bytes, "gzip", request: request) }
      #expect(ofTheRequest?.code == .tooLarge)
      _ = try await decode(bytes, "gzip", maximumSize: 22)
    }

    @Test func anotherCodingHasNoStep() {
      #expect(HTTPSource().decoder(for: "compress") == nil)
      #expect(HTTPSource().decoder(for: "") == nil)
      #expect(HTTPSource { $0.keepsContentCoding = true }.decoder(for: "gzip") == nil)
      #expect(HTTPSource().decoder(for: "gzip") != nil)
    }
  }
#endif
