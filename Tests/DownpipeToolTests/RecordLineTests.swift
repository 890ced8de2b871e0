import DownpipeColumns
@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import DownpipeJSON
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

/// The lines of an exported queue.
@Suite(.endsHangs)
struct RecordLineTests {
  private static func record(_ change: (inout DownloadRecord) throws -> Void = { _ in }) throws -> DownloadRecord {
    var record = DownloadRecord(
      request: try DownloadRequest("https://example.org/file", id: "a"), generation: 3, arrival: 7, rank: Rank(),
      createdAt: Date(timeIntervalSince1970: 1_700_000_000.5))
    try change(&record)
    return record
  }

  private static func text(_ record: DownloadRecord) throws -> String {
    String(decoding: try RecordLine.bytes(record), as: UTF8.self)
  }

  private static func read(_ text: String) throws -> DownloadRecord { try RecordLine.record(text.utf8) }

  @Test("The line of a simple download has no more than it needs")
  func simple() throws {
    #expect(try Self.text(Self.record()) == simpleLine)
    #expect(try Self.read(simpleLine) == Self.record())
  }

  @Test("What is equal has equal lines, however it was built")
  func canonical() throws {
    let names = (0..<50).map { "n\($0)" }
    func record(_ names: [String]) throws -> DownloadRecord {
      try Self.record { record in
        record.request.tags = Set(names)
        record.request.after = Set(names.map { DownloadID($0) })
        record.waitsFor = record.request.after
        record.request.steps = .only(Set(names))
        for name in names { record.request.metadata[name] = name }
        record.added = record.request
        record.added?.priority = .high
      }
    }
    let lines = try [names, names.reversed(), names.shuffled()].map { try Self.text(record($0)) }
    #expect(Set(lines).count == 1)
    #expect(try Self.read(lines[0]) == record(names))
  }

  @Test("A line is one line for all texts, and has no character that controls a terminal")
  func oneLine() throws {
    let odd = (UInt32(0)..<0x3000).compactMap(Unicode.Scalar.init).map { String($0) }.joined() + "🛰️"
    let record = try Self.record { record in
      record.request.destination.name = odd
      record.request.metadata = ["x": odd]
      record.error = DownloadError(.network, odd)
      record.location = odd
      record.request.intent = Intent("x\u{2028}")
    }
    let text = try Self.text(record)
    #expect(!text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || $0 == "\u{2028}" })
    #expect(try JSONSerialization.jsonObject(with: Data(text.utf8)) is [String: Any])
    let back = try Self.read(text)
    #expect(back == record)
    #expect(back.request.destination.name?.unicodeScalars.elementsEqual(odd.unicodeScalars) == true)
  }

  @Test("Members may be in any order, with blanks, and nulls")
  func lenient() throws {
    let artifact = StoredArtifact(
      kind: .file, path: "p", name: "n", size: 1, mediaType: "t", modifiedAt: Date(timeIntervalSince1970: 5),
      isReused: true)
    let record = try Self.record { record in
      record.phase = .finished
      record.steps.artifact = artifact
      record.isPausedTogether = true
    }
    let object = try #require(
      try JSONSerialization.jsonObject(with: try RecordLine.bytes(record).data) as? [String: Any])
    for keys in [object.keys.sorted(), object.keys.sorted().reversed()] {
      let members = try keys.map { key in
        let value = String(
          decoding: try JSONSerialization.data(withJSONObject: [try #require(object[key])]), as: UTF8.self)
        return " \"\(key)\" :\t\(value.dropFirst().dropLast()) "
      }
      #expect(try Self.read("{" + members.joined(separator: ",") + ", \"lineage\": null}\r") == record)
    }
    #expect(try Self.read(simpleLine.replacing("}", with: ",\"paused_together\":true}")).isPausedTogether)
  }

  @Test(
    "A damaged line says what is wrong with it",
    arguments: damagedLines)
  func damaged(text: String, word: String) throws {
    #expect(performing: { try Self.read(text) }, throws: { ($0 as? RecordLine.Damage)?.reason.contains(word) ?? false })
  }

  @Test("No line that was changed at random ends the program")
  func fuzz() throws {
    var random = SeededGenerator(seed: 5)
    let line = try RecordLine.bytes(
      Self.record { record in
        record.request.metadata = ["k\"": "v\\\u{1}é"]
        record.error = DownloadError(.network, "x", httpStatus: 5)
        record.request.tags = ["a", "b"]
        record.checkpoint = Checkpoint(
          ranges: ByteRangeSet([0..<9]), total: .known(9), validator: Validator(entityTag: EntityTag("x")))
      })
    var read = 0
    for _ in 0..<20_000 {
      var changed = line
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let index = Int.random(in: changed.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: changed[index] = UInt8.random(in: 0...255, using: &random)
        case 1: changed.remove(at: index)
        default: changed.insert(changed.randomElement(using: &random) ?? 0, at: index)
        }
      }
      guard let record = try? RecordLine.record(changed) else { continue }
      // What is read can be written and read again.
      #expect(try RecordLine.record(RecordLine.bytes(record)) == record)
      read += 1
    }
    #expect(read > 1_000)
  }

  // MARK: The file

  @Test("The first and the last line are told from downloads")
  func kinds() throws {
    func kind(_ text: String) -> QueueFile.Line { QueueFile.kind(of: Array(text.utf8)) }
    #expect(kind(QueueFile.firstLine) == .first(version: 1))
    #expect(kind(QueueFile.lastLine(downloads: 5)) == .last(downloads: 5))
    #expect(kind(#"{ "version": 2, "format": "downpipe-queue", "more": [] }"#) == .first(version: 2))
    for text in [simpleLine, "", "{}", "x", #"{"format":"other","version":1}"#, #"{"downloads":"5"}"#] {
      #expect(kind(text) == .download)
    }
  }

  @Test("Lines are read whole wherever the pieces of a file end", arguments: ["\n", "\r\n"])
  func lines(end: String) async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let texts = (0..<40).map { String(repeating: "x", count: $0 * 20_011) } + ["", "last"]
    try folder.write(Array(texts.joined(separator: end).utf8), to: "file")
    let reader = try LineReader(folder.path("file"))
    var found: [String] = []
    while true {
      let lines = try await reader.next(7, of: 1 << 20) { line in
        (line.number, String(decoding: line.bytes ?? [], as: UTF8.self))
      }
      if lines.isEmpty { break }
      for (number, text) in lines {
        #expect(number == found.count + 1)
        found.append(text)
      }
    }
    #expect(found == texts.dropLast().map { end == "\n" ? $0 : $0 + "\r" } + texts.suffix(1))
  }
}

extension [UInt8] {
  fileprivate var data: Data { Data(self) }
}

private let simpleLine =
  #"{"arrival":7,"created_at":1700000000.5,"generation":3,"id":"a","phase":"waiting","#
  + #""updated_at":1700000000.5,"url":"https://example.org/file"}"#

/// Lines, and a word of what is wrong with them.
private let damagedLines: [(String, String)] = [
  ("", "no"), ("[]", "JSON"), ("{}", "“generation”"), ("{\"id\":", "JSON"), (simpleLine + "x", "JSON"),
  (simpleLine.replacing(":7", with: ":\"7\""), "“arrival”"), (simpleLine.replacing(":7", with: ":[7]"), "“arrival”"),
  (simpleLine.replacing(":7", with: ":7.5"), "“arrival”"),
  (simpleLine.replacing(":7", with: ":99999999999999999999"), "“arrival”"),
  (simpleLine.replacing(":7", with: ":inf"), "JSON"), (simpleLine.replacing(":7", with: ":0x7"), "JSON"),
  (simpleLine.replacing("\"a\"", with: "\"\""), "id"), (simpleLine.replacing("\"a\"", with: "\"\\u12\""), "JSON"),
  (simpleLine.replacing("\"a\"", with: "\"\\ud800\""), "JSON"), (simpleLine.replacing("\"a\"", with: "\"\t\""), "JSON"),
  (simpleLine.replacing("https://example.org/file", with: "http://["), "“url”"),
  (simpleLine.replacing("waiting", with: "sleeping"), "“phase”"),
  (simpleLine.replacing("}", with: ",\"rank\":1}"), "“rank”"),
  (simpleLine.replacing("}", with: ",\"priority\":40000}"), "“priority”"),
  (simpleLine.replacing("}", with: ",\"tags\":[1]}"), "“tags”"),
  (simpleLine.replacing("}", with: ",\"headers\":\"x\"}"), "“headers”"),
  (simpleLine.replacing("}", with: ",\"headers\":[1]}"), "“headers”"),
  (simpleLine.replacing("}", with: ",\"error\":{\"code\":}"), "JSON"),
  (simpleLine.replacing("}", with: ",\"dependencies\":[\"a\"]}"), "itself"),
]
