#if SQLite
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  @Suite(.endsHangs)
  struct SortedKeysTests {
    @Test(arguments: [1, 2, 511, 512, 513, 3_000])
    func agreesWithASortedSet(_ count: Int) {
      var keys = SortedKeys<Int>()
      var reference = Set<Int>()
      var generator = SystemRandomNumberGenerator()
      for step in 0..<count * 3 {
        let key = Int.random(in: 0..<count * 2, using: &generator)
        if step % 3 == 2 {
          keys.remove(key)
          reference.remove(key)
        } else {
          keys.insert(key)
          reference.insert(key)
        }
      }
      var found: [Int] = []
      keys.forEach {
        found.append($0)
        return true
      }
      #expect(found == reference.sorted())
      #expect(keys.count == reference.count)
      #expect(keys.first == reference.min())

      found = []
      keys.forEach(from: count) {
        found.append($0)
        return found.count < 3
      }
      #expect(found == Array(reference.sorted().filter { $0 >= count }.prefix(3)))
      for key in reference { keys.remove(key) }
      #expect(keys.count == 0)
      #expect(keys.first == nil)
    }

    @Test func growingKeysFillTheirChunks() {
      var keys = SortedKeys<Int>()
      for key in 0..<100_000 { keys.insert(key) }
      var sum = 0
      keys.forEach {
        sum += $0
        return true
      }
      #expect(sum == 100_000 * 99_999 / 2)
    }
  }
#endif
