import DownpipeCore
import Foundation

extension StorageConformance {
  /// Simulates the end of the process while a note is written.
  private struct Crash: Error {}

  func checkCrashes(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 70_000)
    await report.check(
      "publishing-again-after-success",
      "publishing again after a crash that lost only the record finds the published artifact"
    ) {
      try await withStaged(bytes, as: "conformance.bin") { staged, key in
        let notes = Watched<[String]>([])
        let destination = newName()
        let first = try await storage.publish(
          staged, of: nil, at: destination,
          in: try await context(key) { note in notes.update { $0.append(note) } })
        let second = try await storage.publish(
          staged, of: nil, at: destination, in: try await context(key, priorNote: notes.value.last))
        try expectEqual(second.location, first.location, "the location after publishing again")
        try expectEqual(second.name, first.name, "the name after publishing again")
        try await expectPublished(second, bytes)
        try await storage.remove(second)
      }
    }
    await report.check(
      "publishing-again-after-a-crash", "publishing again after a crash during publishing publishes the correct bytes"
    ) {
      try await withStaged(bytes, as: "conformance.bin") { staged, key in
        let notes = Watched<[String]>([])
        let destination = newName()
        do {
          let early = try await storage.publish(
            staged, of: nil, at: destination,
            in: try await context(key) { note in
              notes.update { $0.append(note) }
              throw Crash()
            })
          // A storage that writes no note has published; the previous rule checks that.
          return try await storage.remove(early)
        } catch {
          guard let note = notes.value.last else { throw error }
          let published = try await storage.publish(
            staged, of: nil, at: destination, in: try await context(key, priorNote: note))
          try await expectPublished(published, bytes)
          try expectEqual(published.name, destination.name ?? "", "the name")
          try await storage.remove(published)
        }
      }
    }
  }

  func checkPaths(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 1000)
    await report.check("unsafe-names-are-refused", "a name that leads out of its folder is refused with .unsafePath") {
      for name in ["../x", "/etc/downpipe-conformance", "a/../../b", "..", ".", "nul\u{0}byte"] {
        try await expectError(.unsafePath, when: "publishing under the name “\(name)”") {
          try await publish(bytes, at: .init(name: name))
        }
      }
    }
    await report.check(
      "unsafe-folders-are-refused", "a folder that is not below the root is refused with .unsafePath",
      needs: ["publishing-into-a-folder"]
    ) {
      for directory in ["..", "../x", "/etc", "a/../../b", "a/..", "nul\u{0}byte"] {
        try await expectError(.unsafePath, when: "publishing into the folder “\(directory)”") {
          try await publish(bytes, at: .init(directory: directory, name: "downpipe-conformance"))
        }
      }
    }
    await report.check(
      "unsafe-artifact-names-are-refused", "an unsafe name of an artifact is refused too",
      needs: ["publishing-without-a-name"]
    ) {
      for name in ["../x", "/etc/downpipe-conformance", "..", "."] {
        try await expectError(.unsafePath, when: "publishing an artifact of the name “\(name)”") {
          try await withStaged(bytes, as: "conformance.bin") { staged, key in
            var hostile = staged
            hostile.name = name
            _ = try await storage.publish(hostile, of: nil, at: .init(), in: try await context(key))
          }
        }
      }
    }
    await report.check("destinations-are-checked", "check(_:) refuses exactly the destinations that publishing refuses")
    {
      for destination in [
        DownloadRequest.Destination(), .init(name: "ä %2e.bin"), .init(directory: "a folder/another", name: ".hidden"),
      ] {
        try storage.check(destination)
      }
      let unsafe: [DownloadRequest.Destination] = [
        .init(name: "../x"), .init(directory: "/etc"), .init(directory: "a/.."),
      ]
      for destination in unsafe {
        do throws(DownloadError) {
          try storage.check(destination)
        } catch {
          let isFitting = error.code == .unsafePath || error.code == .invalidRequest
          try expect(isFitting, "\(destination) is refused with \(error.code)")
        }
      }
    }
    await report.check("stored-paths-come-back", "path(forStored:) reverses storedPath(for:)") {
      try await publish(bytes, at: .init(directory: "conformance folder", name: "ä %2e.bin")) { staged, published in
        for artifact in [staged, published] {
          guard let path = artifact.path else { continue }
          let stored = storage.storedPath(for: path)
          try expectEqual(try storage.path(forStored: stored), path, "the path of “\(stored)”")
        }
        guard let path = published.path else { return }
        try expect(!storage.storedPath(for: path).hasPrefix("/"), "the stored path is not relative to the root")
      }
    }
    await report.check("unsafe-stored-paths-are-refused", "a stored path that leads out of the root is refused") {
      for stored in ["../x", "a/../../b", ".."] {
        try await expectError(.unsafePath, when: "path(forStored: “\(stored)”)") {
          _ = try storage.path(forStored: stored)
        }
      }
    }
  }
}
