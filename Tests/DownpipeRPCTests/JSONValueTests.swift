import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct JSONValueTests {
  private func parse(_ text: String) throws -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

  private func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }

  @Test(
    arguments: [
      ("true", .bool(true)), ("false", .bool(false)), ("1", .integer(1)), ("0", .integer(0)), ("-1", .integer(-1)),
      ("null", .null), ("1.5", .number(1.5)), ("\"\"", .string("")), ("\"1\"", .string("1")), ("[]", .array([])),
      ("{}", .object([:])), ("[true,1,0,false]", .array([.bool(true), .integer(1), .integer(0), .bool(false)])),
      ("{\"a\":[null,\"b\"]}", .object(["a": .array([.null, .string("b")])])),
      ("\"a\\u0000b\"", .string("a\0b")), ("\"\\ud83d\\ude00\"", .string("😀")), ("\"a/b\"", .string("a/b")),
    ] as [(String, JSONValue)])
  func valuesAreReadAndWritten(text: String, value: JSONValue) throws {
    #expect(try parse(text) == value)
    #expect(try JSONValue(parsing: value.bytes) == value)
  }

  @Test func trueIsNotOne() throws {
    #expect(try parse("true") != .integer(1))
    #expect(try parse("1") != .bool(true))
    #expect(text(.bool(true)) == "true")
    #expect(text(.integer(1)) == "1")
    #expect(text([.bool(false), .integer(0)]) == "[false,0]")
  }

  @Test(arguments: [Int64.max, Int64.max - 1, 1 << 53 + 1, -(1 << 53) - 1] as [Int64])
  func bigIntegersAreExact(number: Int64) throws {
    #expect(try parse(String(number)) == .integer(number))
    #expect(text(.integer(number)) == String(number))
  }

  @Test(arguments: [
    "9223372036854775808", "18446744073709551615", "18446744073709551616", "123456789012345678901234567890",
    "-9223372036854775809", "-123456789012345678901234567890",
  ])
  func numbersOutOfRangeAreNotIntegers(text: String) throws {
    guard case .number(let number) = try parse(text) else {
      Issue.record("\(text) is not a number of 64 bits")
      return
    }
    #expect(number == Double(text))
  }

  @Test func slashesAreNotEscaped() {
    #expect(text("https://example.org/a") == "\"https://example.org/a\"")
  }

  @Test(arguments: [
    "", " ", "{", "[1", "\"", "nul", "[1]x", "01", "{\"a\"}", "1e400", "{a:1}", "'a'", "\"\\ud800\"", "\"\\udc00x\"",
    "\"\\ud800\\ud800\"",
  ])
  func whatIsNotJSONIsRefused(text: String) {
    #expect(throws: (any Error).self) { try parse(text) }
  }

  @Test(arguments: [[0x22, 0xFF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]])
  func whatIsNotUTF8IsRefused(bytes: [UInt8]) {
    #expect(throws: (any Error).self) { try JSONValue(parsing: bytes) }
  }

  @Test(arguments: [101, 600, 100_000])
  func deepNestingIsRefused(levels: Int) {
    let lists = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    let objects = String(repeating: "{\"a\":", count: levels) + "1" + String(repeating: "}", count: levels)
    #expect(throws: (any Error).self) { try parse(lists) }
    #expect(throws: (any Error).self) { try parse(objects) }
  }

  /// A reply repeats the id of its request.
  @Test(arguments: [1, 99, 100])
  func whatIsReadCanBeWritten(levels: Int) throws {
    let lists = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    #expect(text(try parse(lists)) == lists)
  }

  @Test func membersAndElements() throws {
    let value = try parse("{\"a\":\"b\",\"c\":[1]}")
    #expect(value["a"]?.text == "b")
    #expect(value["c"]?.list == [.integer(1)])
    #expect(value["d"] == nil)
    #expect(value.text == nil)
    #expect(value["a"]?["b"] == nil)
  }
}
