public import DownpipeCore
import Foundation

/// Checks that a storage keeps the contract of ``/DownpipeCore/Storage`` and ``/DownpipeCore/Partial``.
///
/// ```swift
/// let folder = try TemporaryFolder()
/// try await StorageConformance(MyStore(folder.path), onConflict: .replaces).run()
/// ```
/// The suite publishes under its own names, and removes its artifacts and partials.
public struct StorageConformance: Sendable {
  /// What the storage does when the destination exists.
  public enum Conflict: Sendable, Hashable {
    /// The existing file is replaced.
    case replaces
    /// Both files exist afterwards, the new one under another name.
    case keepsBoth
    /// Publishing fails with `.alreadyExists`.
    case fails
    /// ``/DownpipeCore/Storage/existing(for:)`` returns the existing file, and nothing is fetched.
    case reuses
  }

  let storage: any Storage
  let wrapped: (any Storage)?
  let conflict: Conflict?
  let reading: @Sendable (Artifact) async throws -> [UInt8]
  let limit: Duration
  let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - storage: The storage to check. Only the suite may use it.
  ///   - wrapped: The storage that it wraps, to check that the wrapper keeps its abilities; `nil` when it is not a
  ///     wrapper.
  ///   - conflict: What it does when the destination exists; when `nil`, the rules about conflicts are not checked.
  ///   - limit: The longest time for a rule.
  ///   - exclusions: Rules that are not checked, each with its reason.
  ///   - reading: Returns the bytes of an artifact, for storages whose artifacts are neither in memory nor at a path of
  ///     the file system.
  public init(
    _ storage: any Storage, wrapping wrapped: (any Storage)? = nil, onConflict conflict: Conflict? = nil,
    limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = [],
    reading: (@Sendable (Artifact) async throws -> [UInt8])? = nil
  ) {
    self.storage = storage
    self.wrapped = wrapped
    self.conflict = conflict
    self.reading = reading ?? { try $0.readBytes() }
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("StorageConformance(\(storage.name))", excluding: exclusions, limit: limit)
    await checkPartials(report)
    await checkKeys(report)
    await checkHolding(report)
    await checkNaming(report)
    await checkMarks(report)
    await checkCopying(report)
    await checkExporting(report)
    await checkArtifacts(report)
    await checkPublishing(report)
    await checkReplacing(report)
    await checkChanges(report)
    await checkCrashes(report)
    await checkPaths(report)
    await checkMoving(report)
    await checkCompanions(report)
    await checkWrapping(report)
    try report.finish()
  }

  /// A key that no other download has.
  func newKey(_ id: DownloadID = DownloadID(), generation: Int64 = 1) -> PartialKey {
    PartialKey(id: id, generation: generation)
  }

  /// Calls `body` with an open partial, then closes and removes it.
  func withPartial(
    _ key: PartialKey? = nil, _ body: (any Partial, PartialKey) async throws -> Void
  ) async throws {
    let key = key ?? newKey()
    do {
      try await withOpenPartial(key) { try await body($0, key) }
    } catch {
      try? await storage.removePartial(key)
      throw error
    }
    try await storage.removePartial(key)
  }

  /// Calls `body` with an open partial, then closes it.
  func withOpenPartial(_ key: PartialKey, _ body: (any Partial) async throws -> Void) async throws {
    let partial = try await storage.openPartial(key, isNew: false)
    do {
      try await body(partial)
    } catch {
      try? partial.close()
      throw error
    }
    try partial.close()
  }

  func checkPartials(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 100_000)
    await report.check("new-partial-is-empty", "a new partial is empty") {
      try await withPartial { partial, _ in
        try expectEqual(try partial.size(), 0, "the size")
      }
    }
    await report.check("written-bytes-are-read", "written bytes are read, at every position") {
      try await withPartial { partial, _ in
        for start in stride(from: 0, to: bytes.count, by: 7000) {
          try partial.put(bytes[start..<min(bytes.count, start + 7000)], at: Int64(start))
        }
        try expectEqual(try partial.size(), Int64(bytes.count), "the size")
        for (start, count) in [(0, bytes.count), (0, 1), (6999, 2), (50_000, 12_345), (99_999, 1)] {
          let found = try partial.read(at: Int64(start), count: count)
          try expect(
            found == Array(bytes[start..<start + count]), "reading \(count) bytes at \(start) returns other bytes")
        }
      }
    }
    report.build(on: "new-partial-is-empty", "written-bytes-are-read")
    await report.check("reading-ends-at-the-end", "a read returns fewer bytes only at the end") {
      try await withPartial { partial, _ in
        try expectEqual(try partial.read(at: 0, count: 10), [], "the bytes read from an empty partial")
        try partial.put(bytes[..<1000], at: 0)
        try expect(try partial.read(at: 990, count: 100) == Array(bytes[990..<1000]), "the last ten bytes differ")
        try expectEqual(try partial.read(at: 1000, count: 1), [], "the bytes read at the end")
        try expectEqual(try partial.read(at: 5000, count: 1), [], "the bytes read after the end")
      }
    }
    report.build(on: "reading-ends-at-the-end")
    await report.check("writes-are-positioned", "writes may come in any order and may overlap") {
      try await withPartial { partial, _ in
        try partial.put(bytes[60_000...], at: 60_000)
        try partial.put(bytes[..<30_000], at: 0)
        try partial.put(bytes[20_000..<60_001], at: 20_000)
        try expect(try partial.read(at: 0, count: bytes.count) == bytes, "the bytes differ from the written ones")
      }
    }
    await report.check(
      "holes-are-zeros", "holes count in the size and are read as zeros", needs: ["writes-are-positioned"]
    ) {
      try await withPartial { partial, _ in
        try partial.put(bytes[..<100], at: 50_000)
        try expectEqual(try partial.size(), 50_100, "the size")
        let hole = try partial.read(at: 0, count: 50_000)
        try expect(hole.count == 50_000 && hole.allSatisfy { $0 == 0 }, "the hole has other bytes")
      }
    }
    await report.check("empty-write-changes-nothing", "writing no bytes is allowed") {
      try await withPartial { partial, _ in
        try partial.put([UInt8](), at: 0)
        try expectEqual(try partial.size(), 0, "the size")
      }
    }
    await report.check("truncate-cuts", "truncated bytes do not come back when the partial grows again") {
      try await withPartial { partial, _ in
        try partial.put(bytes[..<1000], at: 0)
        try partial.truncate(to: 400)
        try expectEqual(try partial.size(), 400, "the size")
        try partial.truncate(to: 600)
        let found = try partial.read(at: 0, count: 1000)
        try expect(found == Array(bytes[..<400]) + [UInt8](repeating: 0, count: 200), "the remaining bytes differ")
      }
    }
    await report.check("reopening-keeps-bytes", "synchronized bytes exist when the partial is opened again") {
      let key = newKey()
      try await withOpenPartial(key) { partial in
        try partial.put(bytes, at: 0)
        try await partial.synchronize()
      }
      try await withPartial(key) { partial, _ in
        try expectEqual(try partial.size(), Int64(bytes.count), "the size")
        try expect(try partial.read(at: 0, count: bytes.count) == bytes, "the bytes differ")
      }
    }
    report.build(on: "reopening-keeps-bytes")
    await report.check("closed-partial-refuses-writes", "writing to a closed partial throws a DownloadError") {
      let key = newKey()
      let partial = try await storage.openPartial(key, isNew: false)
      try partial.put(bytes[..<10], at: 0)
      try partial.close()
      try await expectError(when: "writing to a closed partial") {
        try partial.put(bytes[..<10], at: 10)
      }
      try await withPartial(key) { partial, _ in try expectEqual(try partial.size(), 10, "the size") }
    }
  }

  func checkKeys(_ report: ConformanceReport) async {
    await report.check("generations-are-separate", "each generation of an id has its own partial") {
      let id = DownloadID()
      try await withPartial(newKey(id, generation: 1)) { first, _ in
        try first.put([1, 1], at: 0)
        try await withPartial(newKey(id, generation: 2)) { second, _ in
          try expectEqual(try second.size(), 0, "the size of the new generation's partial")
          try second.put([2], at: 0)
          try expectEqual(try first.read(at: 0, count: 2), [1, 1], "the first generation")
        }
        try expectEqual(try first.read(at: 0, count: 2), [1, 1], "the first generation, after the second is removed,")
      }
    }
    await report.check("any-id-will-do", "ids of any text up to 255 bytes name different partials") {
      let ids = [
        "../../conformance", "conformance/a", ".", "..", "/", "conformance", "CONFORMANCE", "Conformance",
        "nul\u{0}byte", "nul", " ", "%2e%2e", "ünïcödé", "line\nbreak", String(repeating: "x", count: 255),
        String(repeating: "x", count: 254) + "y", String(repeating: "/", count: 255),
      ]
      let keys = ids.map { newKey(DownloadID($0)) }
      for (number, key) in keys.enumerated() {
        try await withOpenPartial(key) { partial in
          try expectEqual(try partial.size(), 0, "the size of the new partial of “\(key.id)”")
          try partial.put([UInt8(number)], at: 0)
          try await partial.synchronize()
        }
      }
      for (number, key) in keys.enumerated() {
        try await withPartial(key) { partial, _ in
          try expectEqual(try partial.read(at: 0, count: 10), [UInt8(number)], "the partial of “\(key.id)”")
        }
      }
    }
    await report.check(
      "removing-a-partial", "a removed partial does not exist; removing a missing partial is not an error"
    ) {
      let key = newKey()
      try await withOpenPartial(key) { try $0.put([1, 2, 3], at: 0) }
      try await storage.removePartial(key)
      try await storage.removePartial(key)
      try await withPartial(key) { partial, _ in try expectEqual(try partial.size(), 0, "the size") }
    }
    report.build(on: "removing-a-partial")
    await report.check("workspaces", "each partial has its own folder, which is removed with it") {
      let keys = [newKey(), newKey(DownloadID("../conformance")), newKey()]
      var paths: [String] = []
      for key in keys {
        guard let path = try await storage.workspace(key) else { return }
        try expectEqual(try await storage.workspace(key), path, "the workspace the second time")
        try expect(path.hasPrefix("/"), "the workspace “\(path)” is not an absolute path")
        try Data([1]).write(to: URL(filePath: path + "/conformance", directoryHint: .notDirectory))
        paths.append(path)
      }
      try expectEqual(Set(paths).count, keys.count, "the number of folders")
      for (key, path) in zip(keys, paths) {
        try await storage.removePartial(key)
        try expect(!FileManager.default.fileExists(atPath: path), "the workspace exists after removePartial")
      }
    }
    await report.check("partials-at-the-same-time", "several partials can be written at the same time") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for seed in 1...8 as ClosedRange<UInt64> {
          group.addTask {
            let bytes = DownloadFixtures.pattern(size: 200_000, seed: seed)
            try await withPartial { partial, _ in
              for start in stride(from: 0, to: bytes.count, by: 20_000) {
                try partial.put(bytes[start..<start + 20_000], at: Int64(start))
                await Task.yield()
              }
              try expect(try partial.read(at: 0, count: bytes.count) == bytes, "the bytes of a partial differ")
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

extension Partial {
  /// Writes a collection of bytes.
  package func put(_ bytes: some RandomAccessCollection<UInt8>, at offset: Int64) throws {
    let chunk = Array(bytes)
    try write(chunk.span.bytes, at: offset)
  }
}
