import Crypto
import DownpipeOwner
import Synchronization

/// The claims of this process on partials, and what they are called in.
///
/// A claim's text is a ``ProcessOwner`` in short and a number of its own: no two claims ever have the same text, in
/// whatever process, and nothing is asked of the system for a new one. It is short because the target of a symbolic
/// link stays in the inode of common file systems up to 59 bytes; a longer one takes a block, at four times the cost.
/// So what is only compared is hashed: `name.host/boot/space/process/start/copy/number`.
enum Claimants {
  /// This process, and this copy of the code in it.
  static let process = ProcessOwner.new()

  /// The components of the text but for the number.
  private static let components: [String] = [
    process.host.prefix { $0 != "." }.prefix(8) + "." + hash(process.host, 8), hash(process.boot, 6),
    hash(process.space, 4), String(process.process), String(process.start, radix: 36), hash(process.opening, 5),
  ]
  private static let prefix = components.joined(separator: "/") + "/"
  private static let held = Mutex(Held())

  private struct Held: Sendable {
    var last: UInt64 = 0
    /// The numbers of the claims that are held, with the store they are held for.
    var stores: [UInt64: UInt64] = [:]
  }

  /// Nothing stays nothing: what could not be found out proves nothing.
  private static func hash(_ text: String, _ count: Int) -> String {
    if text.isEmpty { return "" }
    let number = SHA256.hash(data: Array(text.utf8)).prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return String(String(number, radix: 36).suffix(count))
  }

  /// The process that a text speaks of, and the number of its claim; `nil` for text of another kind.
  ///
  /// What is not as with this process is left as the hash, which no process has.
  static func claimant(_ text: String) -> (owner: ProcessOwner, number: UInt64?)? {
    if let owner = ProcessOwner(text) { return (owner, nil) }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 7, let id = Int32(parts[3]), let start = UInt64(parts[4], radix: 36),
      let number = UInt64(parts[6], radix: 36)
    else { return nil }
    var owner = process
    if parts[0] != components[0] { owner.host = parts[0] }
    if parts[1] != components[1] { owner.boot = parts[1] }
    if parts[2] != components[2] { owner.space = parts[2] }
    if parts[5] != components[5] { owner.opening = parts[5] }
    owner.process = id
    owner.start = start
    return (owner, number)
  }

  /// Begins a claim.
  static func begin(for store: UInt64) -> UInt64 {
    held.withLock { held in
      held.last += 1
      held.stores[held.last] = store
      return held.last
    }
  }

  /// Ends a claim: nobody works in its name any more.
  static func end(_ number: UInt64) {
    held.withLock { held in _ = held.stores.removeValue(forKey: number) }
  }

  /// The store that a claim of this process is held for; `nil` when it has ended.
  static func store(of number: UInt64) -> UInt64? { held.withLock { $0.stores[number] } }

  /// What a claim says.
  static func text(of number: UInt64) -> String { prefix + String(number, radix: 36) }

  /// The name of a new store: copies of the value share it.
  static func newStore() -> UInt64 { stores.add(1, ordering: .relaxed).newValue }

  private static let stores = Atomic<UInt64>(0)
}
