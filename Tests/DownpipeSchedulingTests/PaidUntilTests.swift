import Testing

@testable import DownpipeScheduling

/// The memory of rate policies for hosts and downloads.
struct PaidUntilTests {
  @Test func debtsAreKeptAndTheOthersAreForgotten() {
    var paid = PaidUntil()
    for number in 0..<20_000 {
      let owes = number.isMultiple(of: 2)
      paid.set(.seconds(owes ? 1_000_000 : number), for: "host\(number)", at: .seconds(number + 1))
    }
    #expect((0..<20_000).filter { $0.isMultiple(of: 2) }.allSatisfy { paid["host\($0)"] == .seconds(1_000_000) })
    // Without debts, no more than the fewest are kept.
    for number in 0..<100_000 { paid.set(.seconds(2_000_000), for: "later\(number)", at: .seconds(3_000_000)) }
    #expect(paid.count <= 2 * PaidUntil.fewest + 20_000)
    #expect(paid["host0"] == nil)
  }
}
