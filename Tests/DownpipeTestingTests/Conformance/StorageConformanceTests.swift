import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct StorageConformanceTests {
  @Test(arguments: [
    (FakeStorage.Conflict.replace, StorageConformance.Conflict.replaces), (.keepBoth, .keepsBoth), (.fail, .fails),
    (.reuse, .reuses),
  ])
  func theFakePasses(_ conflict: FakeStorage.Conflict, _ expected: StorageConformance.Conflict) async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    for workspaces in [nil, folder.path] {
      let storage = FakeStorage(onConflict: conflict, workspaces: workspaces)
      try await StorageConformance(
        storage, onConflict: expected, reading: { try storage.bytes(of: $0) ?? $0.readBytes() }
      ).run()
      #expect(storage.published.isEmpty)
      #expect(storage.partials.isEmpty)
      #expect(storage.openPartials == 0)
    }
    #expect(try folder.contents().isEmpty)
  }

  struct Flaw: Sendable, CustomTestStringConvertible {
    let rule: String
    var conflict: (FakeStorage.Conflict, StorageConformance.Conflict) = (.replace, .replaces)
    let change: @Sendable (inout AlteredStorage) -> Void
    var testDescription: String { rule }
  }

  private static let flaws: [Flaw] = [
    Flaw(rule: "new-partial-is-empty") { $0.onOpen = { try $0.put([0], at: 0) } },
    Flaw(rule: "written-bytes-are-read") {
      $0.onWrite = { partial, bytes, offset in try partial.put(bytes.dropLast(), at: offset) }
    },
    Flaw(rule: "reading-ends-at-the-end") {
      $0.onRead = { partial, offset, count in
        let bytes = try partial.read(at: offset, count: count)
        return bytes + [UInt8](repeating: 0, count: count - bytes.count)
      }
    },
    Flaw(rule: "writes-are-positioned") {
      $0.onWrite = { partial, bytes, _ in try partial.put(bytes, at: try partial.size()) }
    },
    Flaw(rule: "holes-are-zeros") {
      $0.onWrite = { partial, bytes, offset in
        let size = try partial.size()
        if size < offset { try partial.put([UInt8](repeating: 1, count: Int(offset - size)), at: size) }
        try partial.put(bytes, at: offset)
      }
    },
    Flaw(rule: "empty-write-changes-nothing") {
      $0.onWrite = { partial, bytes, offset in
        if bytes.isEmpty { throw DownloadError(.storage, "there is nothing to write") }
        try partial.put(bytes, at: offset)
      }
    },
    Flaw(rule: "truncate-cuts") { $0.onTruncate = { _, _ in } },
    Flaw(rule: "reopening-keeps-bytes") { $0.onOpen = { try $0.truncate(to: 0) } },
    Flaw(rule: "closed-partial-refuses-writes") { $0.swallowsLateWrites = true },
    Flaw(rule: "generations-are-separate") { $0.key = { PartialKey(id: $0.id, generation: 1, isSecond: $0.isSecond) } },
    Flaw(rule: "any-id-will-do") { $0.key = { $0.renamed(to: $0.id.rawValue.lowercased()) } },
    Flaw(rule: "any-id-will-do") { $0.key = { $0.renamed(to: String($0.id.rawValue.prefix(254))) } },
    Flaw(rule: "removing-a-partial") { $0.onRemovePartial = { _, _ in } },
    Flaw(rule: "removing-a-partial") {
      $0.onRemovePartial = { storage, key in
        if storage.partials[key] == nil { throw DownloadError(.storage, "there is no such partial") }
        try await storage.removePartial(key)
      }
    },
    Flaw(rule: "workspaces") { storage in
      let base = storage.base
      storage.onWorkspace = { _ in try await base.workspace(PartialKey(id: "one for all", generation: 1)) }
    },
    Flaw(rule: "partials-at-the-same-time") {
      let latest = Watched<(any Partial)?>(nil)
      $0.onOpen = { partial in latest.update { $0 = partial } }
      $0.onWrite = { partial, bytes, offset in
        try (latest.value ?? partial).put(bytes, at: offset)
      }
    },
    Flaw(rule: "persisted-bytes-survive") { $0.onPersist = { _ in } },
    Flaw(rule: "old-bytes-are-not-seen") { $0.isSeenAnew = { _ in false } },
    Flaw(rule: "finished-partial-stays-held") { $0.isHeldWhenFinished = false },
    Flaw(rule: "publishing-a-held-partial") {
      $0.onPublish = { storage, artifact, destination, context in
        if case .memory(let bytes) = artifact.location, bytes.count == 20_000 {
          throw DownloadError(.storage, "there is nothing at the path")
        }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "artifact-of-a-closed-partial") {
      $0.onArtifact = {
        var artifact = $0
        artifact.name = "partial"
        return artifact
      }
    },
    Flaw(rule: "artifact-of-a-closed-partial") { $0.onIsStaged = { _ in false } },
    Flaw(rule: "publishing") { $0.onIsStaged = { _ in true } },
    Flaw(rule: "publishing") { $0.onContains = { _ in false } },
    Flaw(rule: "publishing") { $0.onPublish = { _, artifact, _, _ in artifact } },
    Flaw(rule: "publishing-into-a-folder") {
      $0.onPublish = { storage, artifact, destination, context in
        if let directory = destination.directory, directory.contains("/") {
          throw DownloadError(.storage, "there is no folder \(directory)")
        }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "publishing-without-a-name") {
      $0.onPublish = { storage, artifact, destination, context in
        try await storage.publish(
          artifact, of: nil, at: .init(directory: destination.directory, name: destination.name ?? "download"),
          in: context)
      }
    },
    Flaw(rule: "publishing-an-empty-file") {
      $0.onPublish = { storage, artifact, destination, context in
        if artifact.size == .known(0) { throw DownloadError(.storage, "there is nothing to publish") }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "publishing-a-folder") {
      $0.onPublish = { storage, artifact, destination, context in
        if artifact.kind == .directory { throw DownloadError(.storage, "folders cannot be published") }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "removing-what-was-published") { $0.onRemove = { _, _ in } },
    Flaw(rule: "conflict", conflict: (.replace, .keepsBoth)) { _ in },
    Flaw(rule: "conflict", conflict: (.replace, .fails)) { _ in },
    Flaw(rule: "conflict", conflict: (.keepBoth, .replaces)) { _ in },
    Flaw(rule: "existing-artifacts", conflict: (.replace, .reuses)) { _ in },
    Flaw(rule: "existing-artifacts", conflict: (.reuse, .replaces)) { _ in },
    Flaw(rule: "publishing-again-after-success", conflict: (.keepBoth, .keepsBoth)) {
      $0.onPublish = { storage, artifact, destination, context in
        try await storage.publish(
          artifact, of: nil, at: destination,
          in: ProcessingContext(
            request: context.request, workspace: nil, replaces: context.replaces, note: { try await context.note($0) }))
      }
    },
    Flaw(rule: "replacing-its-own", conflict: (.fail, .fails)) {
      $0.onPublish = { storage, artifact, destination, context in
        try await storage.publish(
          artifact, of: nil, at: destination,
          in: ProcessingContext(
            request: context.request, workspace: nil, priorNote: context.priorNote, note: { try await context.note($0) }
          ))
      }
    },
    Flaw(rule: "publishing-again-after-a-crash") {
      // Returns the artifact without publishing it.
      $0.onPublish = { storage, artifact, destination, context in
        if context.priorNote != nil {
          return Artifact(location: .path("/fake-storage/\(destination.name ?? "")"), name: destination.name ?? "")
        }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "moving") {
      // Copies instead of moving.
      $0.onPublish = { storage, artifact, destination, context in
        var copy = artifact
        if artifact.path?.hasPrefix(storage.root) == true, let bytes = storage.bytes(of: artifact) {
          copy.location = .memory(bytes)
        }
        return try await storage.publish(copy, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "identity") {
      $0.onRemove = { storage, artifact in
        var anyFile = artifact
        anyFile.identity = nil
        try await storage.remove(anyFile)
      }
    },
    Flaw(rule: "companions") {
      $0.onRemove = { storage, artifact in
        var alone = artifact
        alone.companions = []
        try await storage.remove(alone)
      }
    },
    Flaw(rule: "moving-to-the-same-place", conflict: (.keepBoth, .keepsBoth)) {
      $0.onPublish = { storage, artifact, destination, context in
        guard artifact.path?.hasPrefix(storage.root) == true, let bytes = storage.bytes(of: artifact) else {
          return try await storage.publish(artifact, of: nil, at: destination, in: context)
        }
        var copy = artifact
        copy.location = .memory(bytes)
        let moved = try await storage.publish(copy, of: nil, at: destination, in: context)
        try await storage.remove(artifact)
        return moved
      }
    },
    Flaw(rule: "moving-conflict", conflict: (.fail, .fails)) {
      // Removes the old file before publishing the new one.
      $0.onPublish = { storage, artifact, destination, context in
        guard artifact.path?.hasPrefix(storage.root) == true, let bytes = storage.bytes(of: artifact) else {
          return try await storage.publish(artifact, of: nil, at: destination, in: context)
        }
        var copy = artifact
        copy.location = .memory(bytes)
        try await storage.remove(artifact)
        return try await storage.publish(copy, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "unsafe-names-are-refused") {
      $0.onPublish = { storage, artifact, destination, context in
        var destination = destination
        destination.name = destination.name.map { String($0.split(separator: "/").last ?? "x") }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "unsafe-folders-are-refused") {
      $0.onPublish = { storage, artifact, destination, context in
        var destination = destination
        destination.directory = destination.directory.map { $0.hasPrefix("/") ? String($0.dropFirst()) : $0 }
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "unsafe-artifact-names-are-refused") {
      $0.onPublish = { storage, artifact, destination, context in
        var artifact = artifact
        artifact.name = artifact.name == ".." ? "dots" : artifact.name
        return try await storage.publish(artifact, of: nil, at: destination, in: context)
      }
    },
    Flaw(rule: "stored-paths-come-back") { $0.onStoredPath = { $0 } },
    Flaw(rule: "stored-paths-come-back") { $0.onStoredPath = { $0.removingPercentEncoding ?? $0 } },
    Flaw(rule: "unsafe-stored-paths-are-refused") { $0.onPathForStored = { "/fake-storage/" + $0 } },
  ]

  @Test(arguments: flaws)
  func aFlawIsFound(_ flaw: Flaw) async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    var storage = AlteredStorage(FakeStorage(onConflict: flaw.conflict.0, workspaces: folder.path))
    flaw.change(&storage)
    let altered = storage
    let broken = try await brokenRules {
      try await StorageConformance(
        altered, onConflict: flaw.conflict.1, reading: { try altered.base.bytes(of: $0) ?? $0.readBytes() }
      ).run()
    }
    #expect(broken == [flaw.rule])
  }

  @Test("a wrapper that does not forward an ability is found")
  func aWrapperThatLosesSomethingIsFound() async throws {
    let base = FakeStorage()
    let reading: @Sendable (Artifact) async throws -> [UInt8] = { try base.bytes(of: $0) ?? $0.readBytes() }
    try await StorageConformance(base, wrapping: base, reading: reading).run()
    // It forwards the required methods and no optional ones.
    let broken = try await brokenRules {
      try await StorageConformance(AlteredStorage(base), wrapping: base, reading: reading).run()
    }
    #expect(broken == ["wrapper-loses-nothing"])
  }

  /// A storage on disk, so that the rules about paths apply.
  @Test func aReplacementInTwoPartsIsFound() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    for isAtomic in [true, false] {
      var storage = AlteredStorage(FakeStorage(workspaces: folder.path("work")))
      let placed = folder.path("placed")
      try FileManager.default.createDirectory(atPath: placed, withIntermediateDirectories: true)
      storage.onPublish = { storage, artifact, destination, context in
        let name = destination.name ?? artifact.name
        guard let bytes = storage.bytes(of: artifact), destination.directory == nil, !name.contains("/") else {
          return try await storage.publish(artifact, of: nil, at: destination, in: context)
        }
        let url = URL(filePath: "\(placed)/\(name)", directoryHint: .notDirectory)
        if isAtomic {
          try Data(bytes).write(to: url, options: .atomic)
        } else {
          try? FileManager.default.removeItem(at: url)
          for _ in 0..<20 { await Task.yield() }
          try Data(bytes).write(to: url)
        }
        return Artifact(location: .path("\(placed)/\(name)"), name: name, size: .known(Int64(bytes.count)))
      }
      storage.onContains = { FileManager.default.fileExists(atPath: $0.path ?? "") }
      let altered = storage
      let broken = try await brokenRules {
        try await StorageConformance(altered, onConflict: .replaces).run()
      }
      #expect(broken.contains("publishing-is-atomic") == !isAtomic, "found: \(broken.sorted())")
    }
  }
}

extension PartialKey {
  fileprivate func renamed(to id: String) -> PartialKey {
    PartialKey(id: DownloadID(id), generation: generation, isSecond: isSecond)
  }
}
