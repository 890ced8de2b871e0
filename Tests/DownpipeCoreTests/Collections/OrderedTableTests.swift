import DownpipeTesting
import Testing

@testable import DownpipeCore

struct OrderedTableTests {
  @Test("Entries come in the order in which their keys were inserted")
  func order() {
    var table = OrderedTable<String, Int>()
    #expect(table.isEmpty && table.first == nil)
    for number in 0..<100 { table["\(number)"] = number }
    #expect(table.updateValue(-1, forKey: "3") == 3, "a known key keeps its place")
    #expect(table.updateValue(100, forKey: "100") == nil)
    #expect(table.map(\.value) == [0, 1, 2, -1] + Array(4...100))
    #expect(Array(table.keys) == (0...100).map(String.init))
    #expect(table.removeValue(forKey: "0") == 0)
    #expect(table.removeValue(forKey: "0") == nil)
    table["0"] = 0
    #expect(table.first?.key == "1" && Array(table.values).last == 0, "a removed key loses its place")
    table["1"] = nil
    #expect(table["1"] == nil && table.count == 100)
    table.removeFirst()
    #expect(table.first?.value == -1)
    let texts = table.mapValues { "\($0)" }
    #expect(texts.map(\.value) == table.map { "\($0.value)" } && texts["0"] == "0")
    table.removeAll { key, value in value % 2 == 0 || key == "5" }
    #expect(table.map(\.value) == [-1] + stride(from: 7, through: 99, by: 2))
    table.removeAll()
    #expect(table.isEmpty && table.map(\.key).isEmpty)
  }

  @Test("Values are changed in place")
  func inPlace() {
    var table = OrderedTable<Int, [Int]>(minimumCapacity: 2)
    table[1, default: []].append(1)
    table[2, default: []].append(2)
    table[1, default: []].append(3)
    table[1]?.append(4)
    table[3]?.append(5)
    #expect(table.map(\.value) == [[1, 3, 4], [2]])
    #expect(table[3, default: [6]] == [6] && table.count == 2, "reading inserts nothing")
    table[1]?.removeAll()
    #expect(table[1] == [], "an empty value is a value")
  }

  @Test("A copy is a value of its own")
  func copies() {
    var table = OrderedTable<Int, Int>()
    for number in 0..<5 { table[number] = number }
    let copy = table
    for (key, _) in table where key != 2 { table[key] = nil }
    #expect(table.map(\.key) == [2] && copy.map(\.key) == [0, 1, 2, 3, 4])
  }

  /// The table is compared with an array of keys and a dictionary through random changes.
  @Test(arguments: 0..<40)
  func likeADictionaryAndAList(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var table = OrderedTable<Int, Int>()
    var (keys, values): ([Int], [Int: Int]) = ([], [:])
    for number in 0..<2_000 {
      let key = Int.random(in: 0..<60, using: &generator)
      switch Int.random(in: 0..<8, using: &generator) {
      case 0, 1, 2:
        if values.updateValue(number, forKey: key) == nil { keys.append(key) }
        table[key] = number
      case 3:
        #expect(table[key, default: -1] == values[key, default: -1])
        if values[key] == nil { keys.append(key) }
        values[key, default: -1] += 1
        table[key, default: -1] += 1
      case 4, 5:
        #expect(table.removeValue(forKey: key) == values.removeValue(forKey: key))
        keys.removeAll { $0 == key }
      case 6:
        if let first = keys.first { values[first] = nil }
        keys = Array(keys.dropFirst())
        table.removeFirst()
      default:
        guard number % 50 == 0 else { continue }
        keys.removeAll { $0 % 3 == 0 }
        values = values.filter { $0.key % 3 != 0 }
        table.removeAll { key, _ in key % 3 == 0 }
      }
      #expect(table.count == keys.count && table.first?.key == keys.first)
    }
    #expect(table.map(\.key) == keys && table.allSatisfy { values[$0.key] == $0.value })
  }
}
