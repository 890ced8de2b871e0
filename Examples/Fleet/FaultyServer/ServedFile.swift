import DownpipeTesting
import Foundation

/// A file of the server, whose bytes follow from its path: nothing is stored, and every copy can be checked.
struct ServedFile: Hashable, Sendable {
  let number: Int
  /// In bytes.
  let size: Int64

  init(number: Int, size: Int64) { (self.number, self.size) = (number, size) }

  /// A size of most files: 1 to 64 KiB. One file of two hundred has 1 to 8 MiB.
  init(number: Int, using generator: inout SeededGenerator) {
    let isLarge = Int.random(in: 0..<200, using: &generator) == 0
    let exponent = isLarge ? Double.random(in: 20...23, using: &generator) : .random(in: 10...16, using: &generator)
    self.init(number: number, size: Int64(exp2(exponent)))
  }

  /// - Parameter path: A path of ``path``, or the name of a file that was saved from it.
  init?(_ path: String) {
    let name = path.split(separator: "/").last ?? ""
    // A copy may have got a number in front of its extension: `000017-4096 (1).bin`.
    let parts = name.split(separator: "-")
    guard name.hasSuffix(".bin"), parts.count == 2, let number = Int(parts[0]),
      let size = Int64(parts[1].prefix { $0.isNumber }), size >= 0
    else { return nil }
    self.init(number: number, size: size)
  }

  var name: String { String(format: "%06d-%lld.bin", number, size) }
  var path: String { "/files/" + name }
  var entityTag: String { "\"\(number)-\(size)\"" }
  var content: ScriptedContent { .pattern(size: size, seed: UInt64(number) &* 0x0000_0100_0000_01B3 ^ UInt64(size)) }

  /// Whether a file on disk has the bytes of this one.
  func matches(_ file: URL) throws -> Bool {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    var position: Int64 = 0
    while let bytes = try handle.read(upToCount: 1 << 20), !bytes.isEmpty {
      guard position + Int64(bytes.count) <= size,
        content.bytes(in: position..<position + Int64(bytes.count)).elementsEqual(bytes)
      else { return false }
      position += Int64(bytes.count)
    }
    return position == size
  }
}

/// The hosts of the server: addresses of one network, all of the same machine.
struct ServedHosts: Sendable {
  /// The first two numbers of the addresses, such as `127.0`, which needs no set-up on Linux.
  let network: String
  let count: Int

  func address(_ host: Int) -> String { "\(network).\(1 + host / 200).\(1 + host % 200)" }

  /// How many hosts have half of the files.
  var busy: Int { max(count / 10, min(4, count)) }

  /// URLs of files, in the order of a queue in which the limits of hosts matter: a few hosts have half of the files.
  func urls(of files: [ServedFile], port: Int, using generator: inout SeededGenerator) -> [String] {
    files.map { file in
      let isBusy = Bool.random(using: &generator)
      let host = Int.random(in: 0..<(isBusy ? busy : count), using: &generator)
      return "http://\(address(host))\(port == 80 ? "" : ":\(port)")\(file.path)"
    }
  }
}
