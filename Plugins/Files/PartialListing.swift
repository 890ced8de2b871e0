import DownpipeCore
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The partials below a folder, and what dead processes have left beside them.
struct PartialListing {
  let store: UInt64
  let system: FileSystem
  /// Says when to give up.
  let isCancelled: () -> Bool

  /// Reads the folder of all partials, and that of the workspaces; there are none when they are missing.
  func read(_ folder: String, workspaces: String) throws -> [StoredPartial] {
    var partials = try unlessMissing { try collect(OpenFolder(folder, system: system), "", depth: 0) }
    let known = Set(partials.map(\.key))
    for path in try unlessMissing({ try stems(OpenFolder(workspaces, system: system), "", depth: 0) }) {
      guard let key = PartialName.key(ofPath: path + PartialName.suffix), !known.contains(key) else { continue }
      let partial = PathText.join(folder, path + PartialName.suffix)
      partials.append(StoredPartial(key: key, size: 0, isInUse: try PartialClaim.isHeld(partial, system: system)))
    }
    return partials
  }

  private func unlessMissing<Element>(_ body: () throws -> [Element]) throws -> [Element] {
    do { return try body() } catch let error as SystemError where error.code == ENOENT { return [] }
  }

  /// The paths of the workspaces.
  private func stems(_ folder: OpenFolder, _ prefix: String, depth: Int) throws -> [String] {
    var stems: [String] = []
    for entry in try system.entries(of: folder.descriptor) {
      if isCancelled() { throw CancellationError() }
      if entry.name.hasSuffix("+"), depth < PartialName.maximumDepth {
        stems += try self.stems(try folder.open(entry), prefix + entry.name + "/", depth: depth + 1)
      } else {
        stems.append(prefix + entry.name)
      }
    }
    return stems
  }

  private func collect(_ folder: OpenFolder, _ prefix: String, depth: Int) throws -> [StoredPartial] {
    var partials: [StoredPartial] = []
    var present: Set<String> = []
    var claims: [String: [Substring]] = [:]
    for entry in try system.entries(of: folder.descriptor) {
      if isCancelled() { throw CancellationError() }
      let name = entry.name
      if PartialName.key(ofPath: prefix + name) != nil {
        present.insert(name)
      } else if let (partial, hash) = Self.claim(name), PartialName.key(ofPath: prefix + partial) != nil {
        claims[partial, default: []].append(hash)
      } else if name.hasSuffix("+"), depth < PartialName.maximumDepth {
        partials += try collect(try folder.open(entry), prefix + name + "/", depth: depth + 1)
      }
    }
    for name in present {
      if isCancelled() { throw CancellationError() }
      guard let key = PartialName.key(ofPath: prefix + name),
        let status = try system.statusIfPresent(folder.entry(name))
      else { continue }
      // Claims name paths, and nearly no partial has one.
      let isInUse =
        try claims[name] != nil && PartialClaim.isHeld(PathText.join(folder.path, name), system: system)
      partials.append(StoredPartial(key: key, size: status.kind == .file ? status.size : 0, isInUse: isInUse))
    }
    for (partial, hashes) in claims where !present.contains(partial) {
      removeClaim(PathText.join(folder.path, partial), hashes)
    }
    return partials
  }

  /// The partial that an entry claims, and the hash of the holder it succeeds, empty for the claim itself.
  private static func claim(_ name: String) -> (partial: String, hash: Substring)? {
    guard let range = name.range(of: PartialClaim.suffix, options: .backwards) else { return nil }
    let hash = name[range.upperBound...]
    guard hash.isEmpty || (hash.first == "." && hash.utf8.count == 17) else { return nil }
    return (String(name[..<range.lowerBound]), hash.dropFirst())
  }

  /// Removes what claims a partial that is not there, unless somebody is about to make it. Only tidiness depends on it.
  private func removeClaim(_ partial: String, _ hashes: [Substring]) {
    guard let claim = try? PartialClaim.take(partial, for: store, system: system) else { return }
    for hash in hashes where !hash.isEmpty { claim.removeLink(hash) }
    claim.release()
  }
}
