import DownpipeCore
import Foundation

extension StorageConformance {
  /// A download that is fetched again takes the place of its own earlier artifact, and of nothing else.
  func checkReplacing(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 70_000)
    let other = DownloadFixtures.pattern(size: 50_000, seed: 2)
    await report.check(
      "replacing-its-own", "an artifact replaces the unchanged one of an earlier fetch, under every conflict policy",
      when: conflict != nil
    ) {
      let destination = newName()
      try await publish(bytes, at: destination) { _, first in
        let second = try await publish(other, at: destination, replacing: first)
        try expectEqual(second.name, first.name, "the name of the second")
        if first.path != nil { try expectEqual(second.location, first.location, "the location of the second") }
        try await expectPublished(second, other)
        try await storage.remove(second)
      }
    }
    report.build(on: "replacing-its-own")
    await report.check(
      "replacing-only-its-own", "a file that was changed since the earlier fetch, or has another name, is not replaced",
      when: conflict == .fails || conflict == .keepsBoth
    ) {
      let destination = newName()
      try await publish(bytes, at: destination) { _, first in
        // An artifact with another name is not in the way.
        let elsewhere = try await publish(other, at: newName(), replacing: first)
        try await expectPublished(first, bytes)
        try await storage.remove(elsewhere)
        guard let path = first.path, FileManager.default.fileExists(atPath: path) else { return }
        let file = URL(filePath: path, directoryHint: .notDirectory)
        let changed = bytes + [1, 2, 3]
        try Data(changed).write(to: file)
        if conflict == .fails {
          try await expectError(.alreadyExists, when: "publishing at a file that was changed") {
            _ = try await publish(other, at: destination, replacing: first)
          }
        } else {
          let second = try await publish(other, at: destination, replacing: first)
          try expect(second.location != first.location, "both are at \(first.location)")
          try await expectPublished(second, other)
          try await storage.remove(second)
        }
        try expect([UInt8](try Data(contentsOf: file)) == changed, "the file that was changed is lost")
        try FileManager.default.removeItem(at: file)
      }
    }
  }

  private func publish(
    _ bytes: [UInt8], at destination: DownloadRequest.Destination, replacing earlier: Artifact
  ) async throws -> Artifact {
    let published = Watched<Artifact?>(nil)
    try await withStaged(bytes, as: "conformance.bin") { staged, key in
      let artifact = try await storage.publish(
        staged, of: nil, at: destination, in: try await context(key, replaces: earlier))
      published.update { $0 = artifact }
    }
    return try expectValue(published.value, "nothing was published")
  }
}
