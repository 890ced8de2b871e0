import Foundation
import Synchronization

/// Slows down who guesses tokens: after ten wrong ones, an address can try one more every six seconds.
final class GuessLimit: Sendable {
  private static let burst = 10.0
  private static let interval: Duration = .seconds(6)
  /// The most addresses that are remembered. The one with the least on its account is forgotten first.
  private static let most = 1024

  private struct Account {
    var guesses: Double
    var at: Duration
  }

  private let accounts = Mutex<[String: Account]>([:])

  /// Whether a token of an address is looked at.
  func mayTry(_ address: String, at now: Duration) -> Bool {
    accounts.withLock { accounts in
      accounts[Self.key(address)].map { Self.guesses(of: $0, at: now) <= Self.burst - 1 } ?? true
    }
  }

  /// Notes a wrong token.
  func noteWrong(_ address: String, at now: Duration) {
    let key = Self.key(address)
    accounts.withLock { accounts in
      let guesses = accounts[key].map { Self.guesses(of: $0, at: now) } ?? 0
      accounts[key] = Account(guesses: min(guesses + 1, Self.burst), at: now)
      guard accounts.count > Self.most else { return }
      let least = accounts.filter { $0.key != key }.min {
        Self.guesses(of: $0.value, at: now) < Self.guesses(of: $1.value, at: now)
      }
      if let least { accounts[least.key] = nil }
    }
  }

  /// How many addresses are remembered.
  var count: Int { accounts.withLock { $0.count } }

  private static func guesses(of account: Account, at now: Duration) -> Double {
    max(0, account.guesses - (now - account.at) / interval)
  }

  /// The network of an IPv6 address: a client has all 64 bits behind it. An address of IPv4 in the form of IPv6 is one address.
  private static func key(_ address: String) -> String {
    var bytes = in6_addr()
    let plain = address.split(separator: "%").first.map(String.init) ?? address
    guard inet_pton(AF_INET6, plain, &bytes) == 1 else { return address }
    return withUnsafeBytes(of: bytes) { bytes in
      let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
      return (isMapped ? bytes[12...] : bytes[..<8]).map { String($0) }.joined(separator: ".")
    }
  }
}
