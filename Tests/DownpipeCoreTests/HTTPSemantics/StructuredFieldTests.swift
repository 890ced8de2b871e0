import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Structured fields (RFC 9651).
@Suite(.endsHangs)
struct StructuredFieldTests {
  @Test(
    "items of every type",
    arguments: [
      ("1", .integer(1)), ("-999999999999999", .integer(-999_999_999_999_999)), ("007", .integer(7)),
      ("1.5", .decimal(thousandths: 1500)), ("-0.125", .decimal(thousandths: -125)),
      ("\"a \\\"b\\\" \\\\\"", .string("a \"b\" \\")), ("*a/b:c", .token("*a/b:c")), ("a%b", .token("a%b")),
      (":aGVsbG8=:", .bytes(Array("hello".utf8))), (":aGVsbG8:", .bytes(Array("hello".utf8))), ("::", .bytes([])),
      ("?1", .boolean(true)), ("?0", .boolean(false)), ("@-5", .date(-5)), ("%\"f%c3%bc\"", .displayString("fü")),
    ] as [(String, StructuredField.BareItem)])
  func items(_ field: String, _ value: StructuredField.BareItem) {
    #expect(StructuredField.item("  \(field) ")?.value == value)
    #expect(StructuredField.item("\(field);a;b=2;a=3")?.parameters.map(\.key) == ["a", "b"])
    #expect(StructuredField.item("\(field);a;b=2;a=3")?.parameters.map(\.value) == [.integer(3), .integer(2)])
    #expect(StructuredField.item("\(field),") == nil && StructuredField.item("\(field) x") == nil)
  }

  @Test(
    "malformed items",
    arguments: [
      "", "-", "1.", "1.1234", "1234567890123456", "1234567890123.1", "--1", "+1", "\"a", "\"\\a\"", "\"é\"",
      "\"\u{7f}\"",
      ":aGVsbG8", ":a b=:", ":_-Ah:", ":=aGVsbG8=:", "?2", "?", "@1.5", "@a", "%a", "%\"%C3\"", "%\"%zz\"", "%\"%c3\"",
      "(1 2)", "é", "\t1", "1\t", "=",
    ])
  func malformedItems(_ field: String) { #expect(StructuredField.item(field) == nil) }

  @Test func listsAndDictionaries() {
    let list = StructuredField.list("1 ,\t(a \"b\";q=1);r, c")
    #expect(
      list == [
        .item(.init(value: .integer(1), parameters: [])),
        .innerList(
          [
            .init(value: .token("a"), parameters: []),
            .init(value: .string("b"), parameters: [.init(key: "q", value: .integer(1))]),
          ], parameters: [.init(key: "r", value: .boolean(true))]),
        .item(.init(value: .token("c"), parameters: [])),
      ])
    #expect(StructuredField.list("") == [] && StructuredField.dictionary("  ")?.isEmpty == true)
    let dictionary = StructuredField.dictionary("a=1, b;x=2, *c=(), a=3")
    #expect(dictionary?.map(\.key) == ["a", "b", "*c"])
    #expect(dictionary?.first?.member == .item(.init(value: .integer(3), parameters: [])))
    for field in ["a,", ",a", "a b", "a,,b", "(a", "(a,b)", "(a\"b\")", "a=,b", "A=1", "a==1", "a=(1"] {
      #expect(StructuredField.dictionary(field) == nil, "\(field)")
    }
  }

  @Test("what a server sends is bounded")
  func bounds() {
    let most = Array(repeating: "a", count: StructuredField.maximumMembers).joined(separator: ",")
    #expect(StructuredField.list(most)?.count == StructuredField.maximumMembers)
    #expect(StructuredField.list(most + ",a") == nil && StructuredField.dictionary(most + ",a") == nil)
    #expect(StructuredField.item("1" + String(repeating: ";a", count: 1025)) == nil)
    #expect(StructuredField.list("(" + String(repeating: "1 ", count: 1025) + ")") == nil)
    #expect(StructuredField.item("\"" + String(repeating: "a", count: StructuredField.maximumBytes) + "\"") == nil)
  }

  // MARK: The corpus

  /// A value of a case, as JSON.
  private indirect enum Value: Decodable, Equatable {
    case null, bool(Bool), number(Double), string(String), array([Value]), typed(String, Value)

    private enum CodingKeys: String, CodingKey { case type = "__type", value }

    init(from decoder: any Decoder) throws {
      if let typed = try? decoder.container(keyedBy: CodingKeys.self),
        let type = try? typed.decode(String.self, forKey: .type)
      {
        self = .typed(type, try typed.decode(Value.self, forKey: .value))
        return
      }
      let single = try decoder.singleValueContainer()
      if let value = try? single.decode(Bool.self) {
        self = .bool(value)
      } else if let value = try? single.decode(Double.self) {
        self = .number(value)
      } else if let value = try? single.decode(String.self) {
        self = .string(value)
      } else {
        self = single.decodeNil() ? .null : .array(try single.decode([Value].self))
      }
    }

    init(_ value: StructuredField.BareItem) {
      self =
        switch value {
        case .integer(let number): .number(Double(number))
        case .decimal(let thousandths): .number(Double(thousandths) / 1000)
        case .string(let text): .string(text)
        case .token(let text): .typed("token", .string(text))
        case .bytes(let bytes): .typed("binary", .string(Self.base32(bytes)))
        case .boolean(let value): .bool(value)
        case .date(let seconds): .typed("date", .number(Double(seconds)))
        case .displayString(let text): .typed("displaystring", .string(text))
        }
    }

    init(_ parameters: [StructuredField.Parameter]) {
      self = .array(parameters.map { .array([.string($0.key), Value($0.value)]) })
    }

    init(_ item: StructuredField.Item) { self = .array([Value(item.value), Value(item.parameters)]) }

    init(_ member: StructuredField.Member) {
      switch member {
      case .item(let item): self.init(item)
      case .innerList(let items, let parameters):
        self = .array([.array(items.map { Value($0) }), Value(parameters)])
      }
    }

    /// RFC 4648 §6, as the cases write bytes.
    private static func base32(_ bytes: [UInt8]) -> String {
      let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
      let bits = bytes.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
      var text = ""
      for start in stride(from: 0, to: bits.count, by: 5) {
        let part = (bits[start..<min(start + 5, bits.count)] + [0, 0, 0, 0]).prefix(5)
        text.append(alphabet[part.reduce(0) { $0 << 1 | Int($1) }])
      }
      return text + String(repeating: "=", count: (8 - text.count % 8) % 8)
    }
  }

  private struct Case: Decodable {
    var name: String
    var raw: [String]
    var header_type: String
    var expected: Value?
    var must_fail: Bool?
    var can_fail: Bool?
  }

  @Test("the suite of the HTTP working group", .enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpus() throws {
    let folder = try #require(Corpora.folder) + "/structured-fields"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }
    var checked = 0
    for name in names {
      for test in try Corpora.read("structured-fields/\(name)", as: [Case].self) {
        let field = test.raw.joined(separator: ", ")
        let parsed: Value? =
          switch test.header_type {
          case "item": StructuredField.item(field).map { Value($0) }
          case "list": StructuredField.list(field).map { .array($0.map { Value($0) }) }
          default:
            StructuredField.dictionary(field).map { .array($0.map { .array([.string($0.key), Value($0.member)]) }) }
          }
        checked += 1
        if test.must_fail == true {
          #expect(parsed == nil, "\(name): \(test.name)")
        } else if !(test.can_fail == true && parsed == nil) {
          #expect(parsed == test.expected, "\(name): \(test.name)")
        }
      }
    }
    #expect(checked >= 166)
  }
}
