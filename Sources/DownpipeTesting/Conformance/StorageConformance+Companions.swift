import DownpipeCore
import Foundation

// Files that a step has made beside its artifact.
extension StorageConformance {
  func checkCompanions(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 70_000)
    let suffixes = [".thumbnail.png", "-2"]
    let companions = [DownloadFixtures.pattern(size: 500, seed: 5), DownloadFixtures.pattern(size: 1, seed: 6)]
    await report.check(
      "companions", "companions are published, moved and removed together with their artifact",
      needs: [
        "removing-what-was-published", "workspaces", "moving", "moving-to-the-same-place", "moving-conflict",
        "moving-again-after-success", "moving-again-after-a-crash",
      ]
    ) {
      try await withCompanions(of: bytes, suffixes, companions) { staged, key in
        let first = try await storage.publish(staged, of: nil, at: newName(), in: try await context(key))
        do {
          try await expectCompanions(first, suffixes, companions)
          let second = try await storage.publish(first, of: nil, at: newName(), in: try await context(key))
          try await expectCompanions(second, suffixes, companions)
          for old in first.companionFiles { try expect(!(await storage.contains(old)), "\(old.name) is still there") }
          try await storage.remove(second)
          for old in second.companionFiles { try expect(!(await storage.contains(old)), "\(old.name) was not removed") }
        } catch {
          try? await storage.remove(first)
          throw error
        }
      }
    }
    await report.check(
      "companions-conflict", "a name is free only if it is for the artifact and all its companions",
      when: conflict == .fails || conflict == .keepsBoth, needs: ["companions", "conflict"]
    ) {
      let destination = newName()
      let taken = DownloadRequest.Destination(name: (destination.name ?? "") + (suffixes.last ?? ""))
      try await publish([7], at: taken) { _, occupant in
        try await withCompanions(of: bytes, suffixes, companions) { staged, key in
          if conflict == .fails {
            try await expectError(.alreadyExists, when: "publishing a companion at an existing destination") {
              _ = try await storage.publish(staged, of: nil, at: destination, in: try await context(key))
            }
          } else {
            let published = try await storage.publish(staged, of: nil, at: destination, in: try await context(key))
            try await expectCompanions(published, suffixes, companions)
            try await storage.remove(published)
          }
          try await expectPublished(occupant, [7])
        }
      }
    }
    await report.check(
      "companions-need-files", "an artifact with companions is refused by a storage without workspaces"
    ) {
      let key = newKey()
      guard try await storage.workspace(key) == nil else { return try await storage.removePartial(key) }
      try await withStaged(bytes, as: "conformance.bin") { staged, key in
        let staged = File(staged).withCompanion(at: "/downpipe-conformance", suffix: ".png").artifact
        try await expectError(.processing, when: "publishing an artifact with companions") {
          _ = try await storage.publish(staged, of: nil, at: newName(), in: try await context(key))
        }
      }
    }
  }

  /// Calls `body` with a finished artifact whose companions are in the workspace; does nothing for a storage without them.
  private func withCompanions(
    of bytes: [UInt8], _ suffixes: [String], _ companions: [[UInt8]],
    _ body: (Artifact, PartialKey) async throws -> Void
  ) async throws {
    try await withStaged(bytes, as: "conformance.bin") { staged, key in
      guard let workspace = try await storage.workspace(key) else { return }
      var file = File(staged)
      for (index, bytes) in companions.enumerated() {
        let path = "\(workspace)/conformance-\(index)"
        try Data(bytes).write(to: URL(filePath: path, directoryHint: .notDirectory))
        file = file.withCompanion(at: path, suffix: suffixes[index])
      }
      try await body(file.artifact, key)
    }
  }

  private func expectCompanions(_ artifact: Artifact, _ suffixes: [String], _ companions: [[UInt8]]) async throws {
    try expect(await storage.contains(artifact), "contains(_:) is false for \(artifact.name)")
    try expectEqual(artifact.companions.map(\.suffix), suffixes, "the companions")
    for (file, bytes) in zip(artifact.companionFiles, companions) {
      if let path = artifact.path {
        try expectEqual(file.path, path + file.name.dropFirst(artifact.name.count), "its path")
      }
      try expect(await storage.contains(file), "contains(_:) is false for \(file.name)")
      try await expectPublished(file, bytes)
    }
  }
}
