#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeHTTP

  @Suite(.endsHangs)
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
      #expect(error?.code == .damaged)
      #expect(error?.message.contains("the body ends before its \(coding) data is complete") == true)
      #expect(error?.message.contains("--keep-encoded") == true)
      #expect(try folder.contents().isEmpty)
    }

    @Test("all members of a gzip body are decoded (RFC 1952 §2.2)", arguments: [1, 2, 5])
    func members(count: Int) async throws {
      let member = Array(try #require(Data(base64Encoded: Self.coded[0].base64)))
      let bytes = Array(repeatElement(member, count: count).joined())
      #expect(
        try await decode(bytes, "gzip").artifact.readBytes() == Array(repeatElement(Self.text, count: count).joined()))
      // Cut in each place but between members.
      for end in member.count * (count - 1) + 1..<bytes.count {
        let error = await downloadError { try await decode(Array(bytes[..<end]), "gzip") }
        #expect(error?.code == .damaged, "cut at \(end)")
      }
    }

    @Test("a member may begin in any block")
    func membersInBlocks() throws {
      let member = Array(try #require(Data(base64Encoded: Self.coded[0].base64)))
      let decoder = try DecodableCoding.gzip.makeDecoder()
      var output: [UInt8] = []
      for byte in member + member {
        try decoder.decode([byte].span.bytes) { decoded in decoded.withUnsafeBytes { output.append(contentsOf: $0) } }
      }
      #expect(output == Self.text + Self.text && decoder.isComplete)
    }

    @Test("bytes after the end are an error that says so", arguments: coded)
    func bytesAfterTheEnd(_ coding: String, _ base64: String) async throws {
      let bytes = Array(try #require(Data(base64Encoded: base64)))
      let error = await downloadError { try await decode(bytes + Array("garbage".utf8), coding) }
      #expect(error?.code == .damaged)
      #expect(error?.message.hasPrefix("other bytes follow the end of the \(coding) data") == true)
    }

    @Test("the limit on the ratio is that of the received bytes, not of what another coding made of them")
    func oneLimitForAllCodings() async throws {
      // More than the 64 MiB that are always allowed.
      let stored = Self.stored(count: 65 << 20)
      let step = try #require(DecodeContent("deflate", maximumSize: nil))
      let folder = try TemporaryFolder()
      let input = File(Artifact(location: .memory(stored), name: "a.txt", size: .known(Int64(stored.count))))
      func decode(received: Int64?) async throws -> File {
        try await step.process(
          input,
          in: ProcessingContext(
            request: try DownloadRequest("http://a/a.txt"), workspace: folder.path, bytesReceived: received))
      }
      // As if it had come in another coding, in 1,000 bytes.
      #expect(await downloadError { try await decode(received: 1000) }?.code == .tooLarge)
      #expect(try await decode(received: nil).artifact.size == .known(65 << 20))
    }

    /// Zeros in deflate without compression (RFC 1951 §3.2.4).
    private static func stored(count: Int) -> [UInt8] {
      var bytes: [UInt8] = []
      var left = count
      let zeros = [UInt8](repeating: 0, count: 65_535)
      while left > 0 {
        let length = min(left, 65_535)
        left -= length
        let (low, high) = (UInt8(length & 255), UInt8(length >> 8))
        bytes += [left == 0 ? 1 : 0, low, high, ~low, ~high]
        bytes += zeros[..<length]
      }
      return bytes
    }

    @Test func otherBytesAreAnError() async throws {
      let error = await downloadError { try await decode(Self.text, "gzip") }
      #expect(error?.code == .damaged)
    }

    @Test func theOutputIsLimited() async throws {
      let bytes = Array(try #require(Data(base64Encoded: Self.coded[0].base64)))
      let ofTheSource = await downloadError { try await decode(bytes, "gzip", maximumSize: 21) }
      #expect(ofTheSource?.code == .tooLarge)
      let request = try DownloadRequest("http://a/a.txt").with(\.maximumSize, 21)
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
