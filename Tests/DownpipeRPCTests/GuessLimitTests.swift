import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct GuessLimitTests {
  private let limit = GuessLimit()

  private func exhaust(_ address: String, at now: Duration = .zero) {
    for _ in 0..<10 { limit.noteWrong(address, at: now) }
  }

  @Test func tenGuessesInARow() {
    for _ in 0..<10 {
      #expect(limit.mayTry("192.0.2.1", at: .zero))
      limit.noteWrong("192.0.2.1", at: .zero)
    }
    #expect(!limit.mayTry("192.0.2.1", at: .zero))
  }

  @Test func thenOneEachSixSeconds() {
    exhaust("192.0.2.1")
    for step in 1...5 {
      let due = Duration.seconds(6 * step)
      #expect(!limit.mayTry("192.0.2.1", at: due - .milliseconds(10)))
      #expect(limit.mayTry("192.0.2.1", at: due))
      limit.noteWrong("192.0.2.1", at: due)
      #expect(!limit.mayTry("192.0.2.1", at: due))
    }
  }

  @Test func afterAMinuteThereAreTenAgain() {
    exhaust("192.0.2.1")
    for _ in 0..<10 {
      #expect(limit.mayTry("192.0.2.1", at: .seconds(60)))
      limit.noteWrong("192.0.2.1", at: .seconds(60))
    }
    #expect(!limit.mayTry("192.0.2.1", at: .seconds(60)))
  }

  /// Wrong tokens that arrive together do not lock an address out for longer.
  @Test func moreThanTenCountAsTen() {
    for _ in 0..<50 { limit.noteWrong("192.0.2.1", at: .zero) }
    #expect(!limit.mayTry("192.0.2.1", at: .seconds(5)))
    #expect(limit.mayTry("192.0.2.1", at: .seconds(6)))
  }

  @Test(arguments: [
    ("192.0.2.1", "192.0.2.2"), ("", "192.0.2.1"), ("::ffff:192.0.2.1", "::ffff:192.0.2.2"),
    ("2001:db8:1:2::1", "2001:db8:1:3::1"), ("2001:db8::1", "2001:db9::1"), ("2001:db8::1", "2001:db8:0:1::1"),
    ("2001:db8:1::1", "2001:db8:1:1::1"), ("::1", "2001:db8::1"),
  ])
  func addressesDoNotAffectEachOther(one: String, other: String) {
    exhaust(one)
    #expect(!limit.mayTry(one, at: .zero))
    #expect(limit.mayTry(other, at: .zero))
    #expect(limit.count == 1)
  }

  /// A client has all addresses of its network, and addresses are written without their longest run of zeros.
  @Test(arguments: [
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:7:8:9:a"), ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"),
    ("2001:db8:1:2::1", "2001:db8:1:2::"), ("2001:db8:1::1", "2001:db8:1::2"),
    ("2001:db8::1", "2001:db8::2"), ("2001:db8::1", "2001:db8::a:b:c:d"), ("fe80::1", "fe80::2"),
    ("2001:db8:1::1", "2001:db8:1:0:a:b:c:d"), ("2001:db8:0:5::1", "2001:db8:0:5:a:b:c:d"),
  ])
  func theAddressesOfANetworkAreOneClient(one: String, other: String) {
    exhaust(one)
    #expect(!limit.mayTry(other, at: .zero))
    limit.noteWrong(other, at: .zero)
    #expect(limit.count == 1)
  }

  @Test func aBoundedNumberOfAddressesIsRemembered() {
    exhaust("198.51.100.1")
    for number in 0..<1200 { limit.noteWrong("10.0.\(number / 256).\(number % 256)", at: .seconds(1)) }
    #expect(limit.count == 1024)
    // The one with the most wrong tokens is not forgotten for others.
    #expect(!limit.mayTry("198.51.100.1", at: .seconds(1)))
  }
}
