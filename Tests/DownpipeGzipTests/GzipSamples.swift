import DownpipeCore
import Foundation
import Testing

@testable import DownpipeGzip

/// Gzip files that are built by the rules of RFC 1952 without libz.
enum GzipSamples {
  /// CRC-32, bit by bit.
  static func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    return ~crc
  }

  static func littleEndian(_ value: UInt32, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// A member of stored blocks, with any of the optional header fields.
  static func member(
    _ content: [UInt8], extra: [UInt8]? = nil, name: [UInt8]? = nil, comment: [UInt8]? = nil,
    headerCRC: Bool = false, headerCRCOffset: UInt32 = 0, flags: UInt8 = 0, crcOffset: UInt32 = 0,
    lengthOffset: UInt32 = 0
  ) -> [UInt8] {
    var flags = flags
    if headerCRC { flags |= 2 }
    if extra != nil { flags |= 4 }
    if name != nil { flags |= 8 }
    if comment != nil { flags |= 16 }
    var bytes: [UInt8] = [0x1F, 0x8B, 8, flags, 1, 2, 3, 4, 0, 255]
    if let extra { bytes += littleEndian(UInt32(extra.count), 2) + extra }
    if let name { bytes += name + [0] }
    if let comment { bytes += comment + [0] }
    if headerCRC { bytes += littleEndian(crc32(bytes) &+ headerCRCOffset, 2) }
    var rest = content[...]
    repeat {
      let part = rest.prefix(65_535)
      rest = rest.dropFirst(part.count)
      bytes += [rest.isEmpty ? 1 : 0] + littleEndian(UInt32(part.count), 2)
      bytes += littleEndian(~UInt32(part.count), 2) + part
    } while !rest.isEmpty
    bytes += littleEndian(crc32(content) &+ crcOffset, 4)
    bytes += littleEndian(UInt32(truncatingIfNeeded: content.count) &+ lengthOffset, 4)
    return bytes
  }

  /// The contents of ``song``.
  static let songText: [UInt8] = (1...40).reversed().flatMap { number in
    Array("\(number) bottles of beer on the wall, \(number) bottles of beer; take one down, pass it around.\n".utf8)
  }

  /// One member with a block of dynamic Huffman codes, created by libz at level 9.
  static let song: [UInt8] = Array(
    Data(
      base64Encoded: """
        H4sIAAAAAAACA53WTU7DQBBE4T2n6ANEiCo7P4jTOMogEJaN4kG5fthH4qlY9+it+mvN+FLntfe5bbW+17m1a61L9Y9Wt2medzU+
        zN+qT1/t91Wry3pbdvU9bVt99pqu689yeX4aXv9OPs45eYLkKU8eIXnMkwdIHvLkHpL7PDlCcsyTAySHPGlIOk8KksqToGfI9Rj0
        ONdj0ONcj0GPcz0GPc71GPQ412PQ41yPQY9zPQY9zvUY9DjXY9DjXI9Aj3I9Aj3K9Qj0KNcj0KNcj0CPcj0CPcr1CPQo1yPQo1yP
        QI9yPQI9yvUAntwO0MnlAJzcDbDJ1QCa3AyQ+cdvDf4s+R2HM56vNmx2HLwDEDqy3+YMAAA=
        """, options: .ignoreUnknownCharacters) ?? Data())
}

/// A file and its contents. It prints only its name, since the contents can be long.
struct GzipSample: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var file: [UInt8]
  var content: [UInt8]

  init(_ name: String, _ file: [UInt8], _ content: [UInt8] = []) {
    testDescription = name
    self.file = file
    self.content = content
  }
}

/// A folder that exists for one test.
func withFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
  let folder = FileManager.default.temporaryDirectory.appending(path: "gunzip-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  return try await body(folder.path())
}

func context(
  workspace: String?, destination: DownloadRequest.Destination = .init()
) throws -> ProcessingContext {
  ProcessingContext(
    request: try DownloadRequest("https://example.org/file.gz", destination: destination), workspace: workspace)
}

extension Gunzip {
  /// Decompresses bytes in memory.
  func unpacked(_ bytes: [UInt8]) async throws -> [UInt8] {
    let input = File(Artifact(location: .memory(bytes), name: "file.gz"))
    let output = try await process(input, in: context(workspace: nil))
    guard case .memory(let bytes) = output.artifact.location else {
      throw DownloadError(.processing, "the output is not in memory")
    }
    return bytes
  }

  /// Decompresses bytes through files, and checks that a failure leaves nothing and that the input stays.
  func unpackedFile(_ bytes: [UInt8], named name: String = "file.gz") async throws -> [UInt8] {
    try await withFolder { folder in
      let path = folder + "/input"
      let workspace = folder + "/workspace"
      try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: true)
      try Data(bytes).write(to: URL(filePath: path))
      defer { #expect(FileManager.default.contents(atPath: path) == Data(bytes)) }
      do {
        let output = try await process(File(path: path, name: name), in: context(workspace: workspace))
        let outputPath = try #require(output.path)
        let data = try #require(FileManager.default.contents(atPath: outputPath))
        #expect(output.artifact.size == .known(Int64(data.count)))
        #expect(try FileManager.default.subpathsOfDirectory(atPath: workspace).count == 2)
        return Array(data)
      } catch {
        #expect(try FileManager.default.subpathsOfDirectory(atPath: workspace) == [])
        throw error
      }
    }
  }

  /// The code of the error of decompression; `nil` when it succeeds.
  func failure(_ bytes: [UInt8]) async -> DownloadError.Code? {
    do {
      _ = try await unpackedFile(bytes)
      return nil
    } catch {
      return (error as? DownloadError)?.code ?? DownloadError.Code("not a DownloadError: \(error)")
    }
  }
}
