import Testing

@testable import DownpipeScheduling

/// The memory of policies for hosts, downloads and groups.
struct RisingLevelsTests {
  @Test func debtsAreKeptAndTheOthersAreForgotten() {
    var paid = RisingLevels<Duration>()
    for number in 0..<20_000 {
      let owes = number.isMultiple(of: 2)
      paid.set(.seconds(owes ? 1_000_000 : number), for: "host\(number)", above: .seconds(number + 1))
    }
    #expect((0..<20_000).filter { $0.isMultiple(of: 2) }.allSatisfy { paid["host\($0)"] == .seconds(1_000_000) })
    // Without debts, no more than the fewest are kept.
    for number in 0..<100_000 { paid.set(.seconds(2_000_000), for: "later\(number)", above: .seconds(3_000_000)) }
    #expect(paid.count <= 2 * RisingLevels<Duration>.fewest + 20_000)
    #expect(paid["host0"] == nil)
  }
}
