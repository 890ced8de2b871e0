import DownpipeCore
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension StorageConformance {
  /// A new partial may be unnamed; the ledger depends on its name.
  func checkNaming(_ report: ConformanceReport) async {
    let old = DownloadFixtures.pattern(size: 30_000, seed: 5)
    let bytes = DownloadFixtures.pattern(size: 20_000)
    await report.check(
      "persisted-bytes-survive", "the bytes of a persisted partial exist when it is closed and opened again"
    ) {
      for isSynchronized in [false, true] {
        let key = newKey()
        let partial = try await storage.openPartial(key, isNew: true)
        try partial.put(bytes[..<10_000], at: 0)
        if isSynchronized { try await partial.synchronize() } else { try partial.persist() }
        try partial.persist()
        try expect(partial.isNamed, "isNamed is false after persist()")
        try partial.put(bytes[10_000...], at: 10_000)
        try expect(try partial.read(at: 0, count: 50_000) == bytes, "the bytes differ before closing")
        try expect(try partial.readIntoBuffer(50_000) == bytes, "the bytes in a larger buffer differ")
        try expect(try partial.readIntoBuffer(100) == Array(bytes[..<100]), "the bytes in a smaller buffer differ")
        try partial.close()
        try await withPartial(key) { partial, _ in
          try expect(
            try partial.read(at: 0, count: 50_000) == bytes,
            "the bytes differ after \(isSynchronized ? "synchronize()" : "persist()")")
        }
      }
    }
    report.build(on: "persisted-bytes-survive")
    await report.check("old-bytes-are-not-seen", "a new partial is empty and replaces the partial with the same key") {
      let key = newKey()
      try await withOpenPartial(key) { partial in
        try partial.put(old, at: 0)
        try await partial.synchronize()
      }
      let partial = try await storage.openPartial(key, isNew: true)
      try expectEqual(try partial.size(), 0, "the size")
      try expectEqual(try partial.read(at: 0, count: 10), [], "the bytes read")
      try partial.put(bytes, at: 0)
      try partial.persist()
      try partial.close()
      try await withPartial(key) { partial, _ in
        try expect(try partial.read(at: 0, count: 50_000) == bytes, "the bytes differ after opening again")
      }
    }
    await report.check("persisted-partial-is-held", "a persisted partial cannot be opened while it is open") {
      let key = newKey()
      let partial = try await storage.openPartial(key, isNew: true)
      try partial.put(bytes, at: 0)
      try partial.persist()
      try await expectError(.inUse, when: "opening a persisted partial") {
        try (try await storage.openPartial(key, isNew: false)).close()
      }
      try partial.close()
      try await storage.removePartial(key)
    }
    await report.check(
      "publishing-a-held-partial", "an open partial can be published, named or unnamed",
      needs: ["finished-partial-stays-held"]
    ) {
      for isPersisted in [false, true] {
        try await publishHeld(bytes) { partial, _ in if isPersisted { try partial.persist() } }
      }
    }
    await report.check(
      "publishing-a-replaced-partial",
      "the written bytes are published even when another file has replaced the name of the partial",
      needs: ["publishing-a-held-partial"]
    ) {
      try await publishHeld(bytes) { partial, artifact in
        try partial.persist()
        guard let path = artifact.path, FileManager.default.fileExists(atPath: path) else { return }
        let other = path + ".conformance"
        try Data(old).write(to: URL(filePath: other, directoryHint: .notDirectory))
        guard rename(other, path) == 0 else { throw DownloadError(.storage, "\(path) cannot be replaced") }
      }
    }
  }

  /// Publishes a new partial while it is open.
  func publishHeld(
    _ bytes: [UInt8], _ change: (any Partial, Artifact) throws -> Void = { _, _ in }
  ) async throws {
    let key = newKey()
    let partial = try await storage.openPartial(key, isNew: true)
    do {
      if !bytes.isEmpty { try partial.put(bytes, at: 0) }
      try change(partial, try partial.artifact(name: "conformance.bin", mediaType: nil))
      try partial.finish()
      let artifact = try partial.artifact(name: "conformance.bin", mediaType: nil)
      try expectEqual(artifact.size, .known(Int64(bytes.count)), "the size of the finished partial")
      let published = try await storage.publish(artifact, of: partial, at: newName(), in: try await context(key))
      try partial.close()
      try await expectPublished(published, bytes)
      try await storage.remove(published)
    } catch {
      try? partial.close()
      try? await storage.removePartial(key)
      throw error
    }
    try await storage.removePartial(key)
  }

  /// Changes of published files by other programs, for storages with paths.
  func checkChanges(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 1000)
    await report.check(
      "changed-artifacts", "a published file that was changed does not count as the artifact and is not removed"
    ) {
      for change in ["another length", "another time"] {
        try await publish(bytes, at: newName()) { _, published in
          guard let path = published.path, FileManager.default.fileExists(atPath: path) else { return }
          if change == "another length" {
            let handle = try FileHandle(forWritingTo: URL(filePath: path, directoryHint: .notDirectory))
            try handle.seekToEnd()
            try handle.write(contentsOf: [1])
            try handle.close()
          } else {
            guard let date = published.modifiedAt else { return }
            try FileManager.default.setAttributes(
              [.modificationDate: date.addingTimeInterval(-10)], ofItemAtPath: path)
          }
          try expect(!(await storage.contains(published)), "contains(_:) is true after the change: \(change)")
          try await storage.remove(published)
          try expect(
            FileManager.default.fileExists(atPath: path), "remove(_:) has removed the file after the change: \(change)")
          try FileManager.default.removeItem(atPath: path)
        }
      }
    }
  }
}

extension Partial {
  /// The first bytes, up to the size of a buffer into which they are read.
  fileprivate func readIntoBuffer(_ size: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: size)
    let count = try bytes.withUnsafeMutableBytes { memory in
      var buffer = memory.mutableBytes
      return try read(at: 0, into: &buffer)
    }
    return Array(bytes.prefix(count))
  }
}
