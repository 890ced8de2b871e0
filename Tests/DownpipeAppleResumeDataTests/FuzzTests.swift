import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

/// Damaged samples either cause a typed error or result in values that can be used and written.
@Suite(.endsHangs)
struct FuzzTests {
  @Test(
    "bytes that are changed, removed, inserted and swapped", arguments: WritingTests.samples,
    [AppleResumeData.Format.xml, .binary])
  func damage(_ sample: (String, Data), _ format: AppleResumeData.Format) throws {
    let good = Array(try AppleResumeData(sample.1).data(format: format))
    var generator = SeededGenerator(seed: UInt64(good.count))
    var read = 0
    let count = LongForm.count(100, long: 300)
    for _ in 0..<count {
      let bad = Self.damaged(good, using: &generator)
      read += try Self.use(Data(bad)) ? 1 : 0
    }
    // Damage in text, dates and unknown values is not detected, so some samples must be readable.
    #expect((1..<count).contains(read))
  }

  @Test("damage in the archived requests", arguments: [Samples.Form.numbered, .named])
  func requests(_ form: Samples.Form) throws {
    let good = Array(try Samples.binary(Data(Samples.request(form, headers: Samples.systemHeaders).utf8)))
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<LongForm.count(500, long: 1500) {
      let bad = Data(Self.damaged(good, using: &generator))
      guard var request = try? ArchivedRequest(bad) else { continue }
      request.set(headers: ["A": "b"])
      request.set(form: form == .named ? .numbered : .named)
      _ = try ArchivedRequest(request.data())
    }
  }

  @Test("truncated lists", arguments: [AppleResumeData.Format.xml, .binary])
  func truncation(_ format: AppleResumeData.Format) throws {
    let good = try AppleResumeData(Samples.plain()).data(format: format)
    for count in stride(from: 0, to: good.count - 10, by: format == .xml ? 37 : 5) {
      #expect(failure(good.prefix(count))?.code == .resumeData)
    }
  }

  /// Reads the data and calls every method. Returns whether it could be read.
  static func use(_ bytes: Data) throws -> Bool {
    var data: AppleResumeData
    do {
      data = try AppleResumeData(bytes)
    } catch {
      #expect(error.code == .resumeData)
      return false
    }
    _ = try? data.checkpoint()
    _ = try? data.request()
    #expect(data.bytesReceived >= 0)
    #expect(data.fileName.map { !$0.contains("/") } ?? true)
    try data.update(bytesReceived: 5)
    data = data.repaired()
    try data.refresh(url: try #require(URL(string: "https://example.org/fresh")))
    let again = try AppleResumeData(data.data(format: .binary))
    #expect(again.bytesReceived == 5)
    #expect(again.url.absoluteString == "https://example.org/fresh")
    return true
  }

  static func damaged(_ good: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
    var bytes = good
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      let at = Int.random(in: 0..<bytes.count, using: &generator)
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: bytes.removeLast(min(bytes.count - 1, Int.random(in: 1...40, using: &generator)))
      case 1: bytes.remove(at: at)
      case 2: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: at)
      case 3: bytes[at] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &generator) ?? 0
      case 4: bytes.swapAt(at, Int.random(in: 0..<bytes.count, using: &generator))
      default: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      }
      if bytes.isEmpty { bytes = [0] }
    }
    return bytes
  }
}
