import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct Aria2OptionTests {
  private func canonical(_ name: String, _ value: JSONValue) throws -> String? {
    let option = try #require(Aria2Option.all[name])
    return option.canonical(value)
  }

  @Test(arguments: [
    ("0", "0"), ("1000", "1000"), ("10k", "10240"), ("10K", "10240"), ("1M", "1048576"), ("3m", "3145728"),
    ("0M", "0"), ("9223372036854775807", "9223372036854775807"),
  ])
  func sizes(text: String, canonical: String) throws {
    #expect(try self.canonical("max-download-limit", .string(text)) == canonical)
  }

  @Test(arguments: [
    "", "K", "M", "-1", "-1M", "1G", "1.5M", " 1", "1 M", "M1", "1MM", "1kM", "0x10", "9223372036854775808",
    "9223372036854775807k", "9007199254740992K", "99999999999999999999M",
  ])
  func whatIsNoSize(text: String) throws {
    #expect(try canonical("max-download-limit", .string(text)) == nil)
  }

  @Test(
    arguments: [
      ("min-split-size", "1M", "1048576"), ("min-split-size", "1024M", "1073741824"), ("min-split-size", "1023K", nil),
      ("min-split-size", "1025M", nil), ("split", "1", "1"), ("split", "16", "16"), ("split", "05", "5"),
      ("split", "0", nil), ("split", "-1", nil), ("split", "", nil), ("split", "many", nil), ("split", "1M", nil),
      ("split", "1.0", nil), ("max-connection-per-server", "16", "16"), ("max-connection-per-server", "17", nil),
      ("connect-timeout", "600", "600"), ("connect-timeout", "601", nil), ("connect-timeout", "0", nil),
      ("rpc-listen-port", "65535", "65535"), ("rpc-listen-port", "65536", nil), ("max-tries", "0", "0"),
      ("max-tries", "99999999999999999999", nil), ("max-concurrent-downloads", "0", nil),
    ] as [(String, String, String?)])
  func ranges(name: String, text: String, canonical: String?) throws {
    #expect(try self.canonical(name, .string(text)) == canonical)
  }

  @Test(
    arguments: [
      ("pause", "true", true), ("pause", "false", true), ("pause", "TRUE", false), ("pause", "1", false),
      ("pause", "", false), ("file-allocation", "none", true), ("file-allocation", "falloc", true),
      ("file-allocation", "Falloc", false), ("file-allocation", "", false), ("file-allocation", "none:falloc", false),
      ("out", "any text: ü", true), ("out", "", true), ("out", "a\0b", false),
    ])
  func flagsAndChoicesAndText(name: String, text: String, isTaken: Bool) throws {
    #expect(try canonical(name, .string(text)) == (isTaken ? text : nil))
  }

  @Test func textIsBounded() throws {
    #expect(try canonical("user-agent", .string(String(repeating: "a", count: 65_536))) != nil)
    #expect(try canonical("user-agent", .string(String(repeating: "a", count: 65_537))) == nil)
  }

  @Test func fieldsAreLines() throws {
    #expect(try canonical("header", "A: b") == "A: b\n")
    #expect(try canonical("header", ["A: b", "C: d"]) == "A: b\nC: d\n")
    #expect(try canonical("header", ["A: b", .integer(1), "C: d"]) == "A: b\nC: d\n")
    #expect(try canonical("header", []) == "")
    // As they were told, and as a client splits that.
    #expect(try canonical("header", "A: b\nC: d\n") == "A: b\nC: d\n")
    #expect(try canonical("header", ["A: b", "C: d", ""]) == "A: b\nC: d\n")
    #expect(try canonical("header", "A: b\n\n") == "A: b\n")
    #expect(try canonical("header", "") == "")
    #expect(try canonical("header", .integer(1)) == nil)
    #expect(try canonical("header", ["A": "b"]) == nil)
  }

  @Test("a field with a line break in it is refused")
  func fieldsWithLineBreaks() throws {
    for value in [
      "A: b\nEvil: c", "A: b\r\nEvil: c", ["A: b\nEvil: c"], ["A: b\n"], ["C: d", "A: b\r\nEvil: c"],
    ] as [JSONValue] {
      #expect(try canonical("header", value) == nil, "\(value)")
    }
  }

  @Test(arguments: [JSONValue.null, .bool(true), .integer(1), .number(1.5), .array(["true"]), .object([:])])
  func valuesAreText(value: JSONValue) throws {
    #expect(try canonical("pause", value) == nil)
    #expect(try canonical("split", value) == nil)
    #expect(try canonical("max-download-limit", value) == nil)
    #expect(try canonical("out", value) == nil)
  }

  // MARK: The table

  @Test func allRowsAreRead() {
    let all = Aria2Option.all
    #expect(all.count > 90)
    #expect(all.allSatisfy { $0.key == $0.value.name })
    #expect(all.keys.filter { $0.hasPrefix("bt-") || $0.hasPrefix("dht-") || $0.contains("torrent") } == [])
    #expect(all.keys.allSatisfy { name in name.allSatisfy { $0.isASCII && ($0.isLowercase || "-68".contains($0)) } })
  }

  /// A client writes back what it has read.
  @Test func standardValuesAreTaken() {
    let refused = Aria2Option.all.values.filter { option in
      option.standard.map { option.canonical(.string($0)) != $0 } ?? false
    }
    #expect(refused.map { $0.name } == [])
  }

  @Test("the documentation has the table as it is")
  func documentation() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../Plugins/RPC/DownpipeRPC.docc/OptionsOfAria2.md")
    let rows = Aria2Option.all.values.sorted { $0.name < $1.name }.map { option in
      let effect =
        switch option.use {
        case .applied: "works as in aria2"
        case .fixed: "is refused"
        case .inner: "changes nothing"
        case .start: "is left out, as by aria2"
        }
      let standard = option.standard.map { "`\($0)`" } ?? "none"
      return "| `\(option.name)` | \(option.isOfRequest ? "downloads" : "the server") | \(standard) | \(effect) |\n"
    }
    let text = try String(contentsOf: file, encoding: .utf8)
    let found = text.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { String($0) + "\n" }
    #expect(found == rows, "the table is:\n\(rows.joined())")
  }

  @Test func scopesAndKinds() {
    let all = Aria2Option.all
    #expect(all["split"]?.isOfRequest == true)
    #expect(all["max-concurrent-downloads"]?.isOfRequest == false)
    #expect(all["split"]?.kind == .number(1...Int64.max))
    #expect(all["connect-timeout"]?.kind == .number(1...600))
    #expect(all["piece-length"]?.kind == .size(1_048_576...1_073_741_824))
    #expect(all["header"]?.kind == .lines)
    #expect(all["proxy-method"]?.kind == .choice(["get", "tunnel"]))
    #expect(all["dir"]?.standard == nil)
    #expect(all["timeout"]?.standard == "60")
  }
}
