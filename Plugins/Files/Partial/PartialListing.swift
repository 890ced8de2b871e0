import DownpipeCore
import DownpipePOSIX
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Lists the partials of a store, and removes abandoned claims and copies without a partial.
struct PartialListing {
  let folders: StoreFolders
  /// Whether to stop with `CancellationError`.
  let isCancelled: () -> Bool

  private var system: FileSystem { folders.system }

  /// Reads the folder of partials and the folder of workspaces. Missing folders count as empty.
  func read() throws -> [StoredPartial] {
    let (folder, workspaces) = (folders.partials, folders.work)
    var partials = try unlessMissing { try collect(OpenFolder(folder, system: system), "", depth: 0) }
    let known = Set(partials.map(\.key))
    for path in try unlessMissing({ try stems(OpenFolder(workspaces, system: system), "", depth: 0) }) {
      guard let key = PartialName.key(ofPath: path + PartialName.suffix), !known.contains(key) else { continue }
      let partial = PathText.join(folder, path + PartialName.suffix)
      partials.append(StoredPartial(key: key, size: 0, isInUse: isHeld(partial)))
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
    var claimed: Set<String> = []
    var copied: Set<String> = []
    for entry in try system.entries(of: folder.descriptor) {
      if isCancelled() { throw CancellationError() }
      let name = entry.name
      if PartialName.key(ofPath: prefix + name) != nil {
        present.insert(name)
      } else if let partial = partial(prefix, name, with: PartialClaim.suffix) {
        claimed.insert(partial)
      } else if let partial = partial(prefix, name, with: PartialClaim.copySuffix) {
        copied.insert(partial)
      } else if name.hasSuffix("+"), depth < PartialName.maximumDepth {
        partials += try collect(try folder.open(entry), prefix + name + "/", depth: depth + 1)
      }
    }
    for name in present {
      if isCancelled() { throw CancellationError() }
      guard let key = PartialName.key(ofPath: prefix + name),
        let status = try system.statusIfPresent(folder.entry(name))
      else { continue }
      // Nearly no partial has a claim.
      let isInUse = claimed.contains(name) && isHeld(PathText.join(folder.path, name))
      partials.append(StoredPartial(key: key, size: status.kind == .file ? status.size : 0, isInUse: isInUse))
    }
    for name in claimed.subtracting(present).union(copied) { tidy(PathText.join(folder.path, name)) }
    return partials
  }

  /// The name of the partial that an entry with a suffix belongs to.
  private func partial(_ prefix: String, _ name: String, with suffix: String) -> String? {
    guard name.hasSuffix(suffix) else { return nil }
    let partial = String(name.dropLast(suffix.count))
    return PartialName.key(ofPath: prefix + partial) == nil ? nil : partial
  }

  /// True if it cannot be determined, such as on a read-only file system.
  private func isHeld(_ partial: String) -> Bool {
    (try? PartialClaim.isHeld(partial, system: system)) ?? true
  }

  /// Removes an abandoned claim without a partial, and an unfinished copy. It is safe to skip: the next owner does it,
  /// too.
  private func tidy(_ partial: String) {
    let claim = try? PartialClaim.take(partial, keepingBytes: true, durability: folders.durability, system: system)
    guard let claim else { return }
    try? system.unlink(Entry(partial + PartialClaim.copySuffix))
    claim.release()
  }
}
