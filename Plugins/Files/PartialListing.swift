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

/// The partials below a folder, and what dead processes have left beside them.
struct PartialListing {
  let folders: StoreFolders
  /// Says when to give up.
  let isCancelled: () -> Bool

  private var system: FileSystem { folders.system }

  /// Reads the folder of all partials, and that of the workspaces; there are none when they are missing.
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
      // Claims name paths, and nearly no partial has one.
      let isInUse = claimed.contains(name) && isHeld(PathText.join(folder.path, name))
      partials.append(StoredPartial(key: key, size: status.kind == .file ? status.size : 0, isInUse: isInUse))
    }
    for name in claimed.subtracting(present).union(copied) { tidy(PathText.join(folder.path, name)) }
    return partials
  }

  /// The name of the partial that an entry is about.
  private func partial(_ prefix: String, _ name: String, with suffix: String) -> String? {
    guard name.hasSuffix(suffix) else { return nil }
    let partial = String(name.dropLast(suffix.count))
    return PartialName.key(ofPath: prefix + partial) == nil ? nil : partial
  }

  /// What cannot be found out, as on a file system that may not be written, counts as held.
  private func isHeld(_ partial: String) -> Bool {
    (try? PartialClaim.isHeld(partial, system: system)) ?? true
  }

  /// Removes an abandoned claim on a partial that is not there, and a copy that was being made, unless the partial is
  /// held. Only tidiness depends on it.
  private func tidy(_ partial: String) {
    let claim = try? PartialClaim.take(partial, keepingBytes: true, durability: folders.durability, system: system)
    guard let claim else { return }
    try? system.unlink(Entry(partial + PartialClaim.copySuffix))
    claim.release()
  }
}
