import DownpipeCore
import Foundation

extension StorageConformance {
  /// Creates a finished artifact and publishes it.
  func publish(
    _ bytes: [UInt8], at destination: DownloadRequest.Destination, as name: String = "conformance.bin",
    _ body: @Sendable (_ staged: Artifact, _ published: Artifact) async throws -> Void = { _, _ in }
  ) async throws {
    try await withStaged(bytes, as: name) { staged, key in
      let published = try await storage.publish(staged, of: nil, at: destination, in: context(key))
      do {
        try await body(staged, published)
      } catch {
        try? await storage.remove(published)
        throw error
      }
      try await storage.remove(published)
    }
  }

  /// Calls `body` with a finished artifact, then removes its partial.
  func withStaged(
    _ bytes: [UInt8], as name: String, _ body: (Artifact, PartialKey) async throws -> Void
  ) async throws {
    let key = newKey()
    do {
      let partial = try await storage.openPartial(key, isNew: false)
      if !bytes.isEmpty { try partial.put(bytes, at: 0) }
      try partial.persist()
      try await partial.synchronize()
      try partial.finish()
      try partial.close()
      try await body(try partial.artifact(name: name, mediaType: "application/octet-stream"), key)
    } catch {
      try? await storage.removePartial(key)
      throw error
    }
    try await storage.removePartial(key)
  }

  func context(
    _ key: PartialKey, priorNote: String? = nil, replaces: Artifact? = nil,
    note: @escaping @Sendable (String) async throws -> Void = { _ in }
  ) async throws -> ProcessingContext {
    ProcessingContext(
      request: try DownloadRequest("https://example.org/conformance.bin", id: key.id),
      workspace: try await storage.workspace(key), priorNote: priorNote, replaces: replaces, note: note)
  }

  /// A destination that does not exist.
  func newName() -> DownloadRequest.Destination { .init(name: "conformance-\(DownloadID()).bin") }

  func expectPublished(_ artifact: Artifact, _ bytes: [UInt8]) async throws {
    let found = try await reading(artifact)
    try expect(
      sameBytes(found[...], bytes[...]),
      "\(artifact.name) has \(found.count) bytes that differ from the \(bytes.count) of the partial")
  }

  func checkArtifacts(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 70_000)
    await report.check("artifact-of-a-closed-partial", "a closed partial is a staged file with its bytes") {
      try await withStaged(bytes, as: "a name.bin") { artifact, _ in
        try expectEqual(artifact.kind, .file, "the kind")
        try expectEqual(artifact.name, "a name.bin", "the name")
        try expectEqual(artifact.mediaType, "application/octet-stream", "the media type")
        if case .known(let size) = artifact.size { try expectEqual(size, Int64(bytes.count), "the size") }
        try expect(try await reading(artifact) == bytes, "its bytes differ")
        try expect(storage.isStaged(artifact), "isStaged(_:) is false")
      }
    }
    report.build(on: "artifact-of-a-closed-partial")
    await report.check("adopting-a-file", "an adopted file becomes the partial") {
      try await withPartial { partial, key in
        guard let folder = try await storage.workspace(key) else {
          return
        }
        try partial.put([9, 9, 9], at: 0)
        let file = folder + "/conformance-adopted"
        try Data(bytes).write(to: URL(filePath: file, directoryHint: .notDirectory))
        guard try partial.adopt(file) else { return }
        try expectEqual(try partial.size(), Int64(bytes.count), "the size")
        try expect(try partial.read(at: 0, count: bytes.count) == bytes, "the bytes differ")
        try expect(!FileManager.default.fileExists(atPath: file), "the file still exists")
        try partial.put([7], at: 0)
        try expectEqual(try partial.read(at: 0, count: 1), [7], "a byte written afterwards")
      }
    }
  }

  func checkPublishing(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 70_000)
    let other = DownloadFixtures.pattern(size: 50_000, seed: 2)
    await report.check("publishing", "a published artifact is at its destination and complete") {
      let destination = newName()
      try await publish(bytes, at: destination) { _, published in
        try expectEqual(published.kind, .file, "the kind")
        try expectEqual(published.name, destination.name ?? "", "the name")
        try await expectPublished(published, bytes)
        try expectEqual(published.size, .known(Int64(bytes.count)), "the size")
        try expect(await storage.contains(published), "contains(_:) is false for \(published.name)")
        try expect(!storage.isStaged(published), "isStaged(_:) is true for \(published.name)")
        try expectEqual(await storage.current(published), published, "the result of current(_:)")
      }
    }
    report.build(on: "publishing")
    await report.check("bytes-in-memory", "a published artifact without a path is found without its bytes") {
      try await publish(bytes, at: newName()) { _, published in
        guard published.path == nil else { return }
        var described = published
        described.location = .memory([])
        let found = try expectValue(storage.published(described), "published(_:) returns nil")
        try await expectPublished(found, bytes)
        try await storage.remove(published)
        try expect(storage.published(described) == nil, "published(_:) returns an artifact after removing")
      }
    }
    await report.check("publishing-into-a-folder", "the folder of the destination is created") {
      let folder = "conformance-\(DownloadID())"
      for directory in ["\(folder)/one", "\(folder)/one/two", folder] {
        try await publish(bytes, at: .init(directory: directory, name: "file.bin")) { _, published in
          try expectEqual(published.name, "file.bin", "the name")
          try await expectPublished(published, bytes)
          if let path = published.path {
            try expect(path.hasSuffix("\(directory)/file.bin"), "it is at \(path)")
          }
        }
      }
    }
    await report.check("publishing-without-a-name", "a destination without a name uses the name of the artifact") {
      let name = "conformance-\(DownloadID()).dat"
      try await publish(bytes, at: .init(), as: name) { _, published in
        try expectEqual(published.name, name, "the name")
        try await expectPublished(published, bytes)
      }
    }
    await report.check(
      "publishing-an-empty-file", "a file without bytes is published like any other",
      needs: ["finished-partial-stays-held"]
    ) {
      try await publish([], at: newName()) { _, published in try await expectPublished(published, []) }
      try await publishHeld([])
    }
    await report.check(
      "removing-what-was-published", "a removed artifact does not exist; removing it again is not an error"
    ) {
      try await publish(bytes, at: newName()) { _, published in
        try await storage.remove(published)
        try expect(!(await storage.contains(published)), "contains(_:) is true after removing")
      }
    }
    await report.check(
      "publishing-a-folder", "a folder is published with its contents", needs: ["removing-what-was-published"]
    ) {
      let key = newKey()
      guard let workspace = try await storage.workspace(key) else { return }
      let folder = workspace + "/conformance-folder"
      try FileManager.default.createDirectory(atPath: folder + "/inner", withIntermediateDirectories: true)
      try Data(bytes).write(to: URL(filePath: folder + "/inner/file.bin", directoryHint: .notDirectory))
      let artifact = Artifact(kind: .directory, location: .path(folder), name: "conformance-folder")
      try expect(storage.isStaged(artifact), "isStaged(_:) is false for a folder in the workspace")
      let published = try await storage.publish(
        artifact, of: nil, at: .init(name: "conformance-\(DownloadID())"), in: try await context(key))
      try expectEqual(published.kind, .directory, "the kind")
      try expect(await storage.contains(published), "contains(_:) is false")
      let path = try expectValue(published.path, "a published folder has no path")
      let file = Artifact(location: .path(path + "/inner/file.bin"), name: "file.bin")
      try expect(try await reading(file) == bytes, "the bytes of the file in it differ")
      try await storage.remove(published)
      try expect(!(await storage.contains(published)), "contains(_:) is true after removing")
      try await storage.removePartial(key)
    }
    await report.check("conflict", "an existing destination is handled as configured", when: conflict != nil) {
      let destination = newName()
      try await publish(bytes, at: destination) { _, first in
        if conflict == .fails {
          try await expectError(.alreadyExists, when: "publishing at an existing destination") {
            try await publish(other, at: destination)
          }
          return try await expectPublished(first, bytes)
        }
        try await publish(other, at: destination) { _, second in
          try await expectPublished(second, other)
          switch conflict {
          case .replaces:
            // The location of an artifact in memory is its bytes.
            if first.path != nil { try expectEqual(second.location, first.location, "the location of the second") }
          case .keepsBoth:
            try expect(second.location != first.location, "both are at \(first.location)")
            try await expectPublished(first, bytes)
          case .reuses, .fails, nil: break
          }
        }
      }
    }
    await report.check(
      "identity", "an artifact with an identity is removed as this very file, and no other one of its size and time",
      when: conflict == .replaces, needs: ["conflict"]
    ) {
      let destination = newName()
      let same = DownloadFixtures.pattern(size: bytes.count, seed: 3)
      try await publish(bytes, at: destination) { _, first in
        guard first.identity != nil else { return }
        try await publish(same, at: destination) { _, second in
          var earlier = first
          earlier.modifiedAt = second.modifiedAt
          try await storage.remove(earlier)
          try await expectPublished(second, same)
        }
      }
    }
    await report.check(
      "existing-artifacts", "existing(for:) finds an artifact that makes a transfer unnecessary", when: conflict != nil
    ) {
      let destination = newName()
      let request = try DownloadRequest("https://example.org/conformance.bin", destination: destination)
      try expect(
        try await storage.existing(for: request) == nil, "existing(for:) returns an artifact that does not exist")
      try await publish(bytes, at: destination) { _, published in
        let found = try await storage.existing(for: request)
        if conflict == .reuses {
          let found = try expectValue(found, "the published artifact is not found")
          try expectEqual(found.name, published.name, "the name of the artifact found")
          try await expectPublished(found, bytes)
        } else {
          try expect(found == nil, "existing(for:) returns an artifact although the storage does not reuse files")
        }
      }
    }
    await report.check(
      "publishing-is-atomic", "a reader sees the complete old file or the complete new one", when: conflict == .replaces
    ) {
      let old = DownloadFixtures.pattern(size: 1 << 20, seed: 3)
      let new = DownloadFixtures.pattern(size: 1 << 20, seed: 4)
      let destination = newName()
      try await publish(old, at: destination) { _, first in
        guard let path = first.path, FileManager.default.fileExists(atPath: path) else { return }
        let url = URL(filePath: path, directoryHint: .notDirectory)
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask {
            for round in 0..<8 { try await replace(first, with: round.isMultiple(of: 2) ? new : old, destination) }
          }
          group.addTask {
            while !Task.isCancelled {
              let seen = [UInt8](try Data(contentsOf: url))
              try expect(
                sameBytes(seen[...], old[...]) || sameBytes(seen[...], new[...]),
                "a reader saw \(seen.count) bytes that are neither file")
              await Task.yield()
            }
          }
          try await group.next()
          group.cancelAll()
          try await group.waitForAll()
        }
      }
    }
  }

  private func replace(_ first: Artifact, with bytes: [UInt8], _ destination: DownloadRequest.Destination) async throws
  {
    try await withStaged(bytes, as: "conformance.bin") { staged, key in
      let second = try await storage.publish(staged, of: nil, at: destination, in: try await context(key))
      try expectEqual(second.location, first.location, "the location of the second")
    }
  }
}
