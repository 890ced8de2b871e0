import DownpipeCore
import Foundation

// A published artifact is published elsewhere: a finished download is renamed.
extension StorageConformance {
  /// Simulates the end of the process while a note is written.
  private struct Crash: Error {}

  func checkMoving(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 70_000)
    await report.check(
      "moving", "publishing a published artifact elsewhere moves it"
    ) {
      for folder in [nil, "conformance-\(DownloadID())"] as [String?] {
        try await withPublished(bytes, at: newName()) { first, key in
          let destination = DownloadRequest.Destination(directory: folder, name: "moved-\(DownloadID()).bin")
          let second = try await storage.publish(first, of: nil, at: destination, in: try await context(key))
          try expectEqual(second.name, destination.name ?? "", "the name")
          try await expectMoved(first, to: second, bytes)
          return second
        }
      }
    }
    await report.check(
      "moving-to-the-same-place", "publishing an artifact at its own location changes nothing", needs: ["moving"]
    ) {
      let destination = newName()
      try await withPublished(bytes, at: destination) { first, key in
        let second = try await storage.publish(first, of: nil, at: destination, in: try await context(key))
        try expectEqual(second.location, first.location, "the place")
        try expectEqual(second.name, first.name, "the name")
        try await expectPublished(second, bytes)
        try expect(await storage.contains(second), "contains(_:) is false")
        return second
      }
    }
    await report.check(
      "moving-conflict", "an existing destination is handled as for a new artifact", when: conflict != nil,
      needs: ["moving", "moving-to-the-same-place", "conflict"]
    ) {
      let other = DownloadFixtures.pattern(size: 50_000, seed: 2)
      let taken = newName()
      try await withPublished(other, at: taken) { occupant, _ in
        try await withPublished(bytes, at: newName()) { first, key in
          if conflict == .fails {
            try await expectError(.alreadyExists, when: "moving to an existing name") {
              _ = try await storage.publish(first, of: nil, at: taken, in: try await context(key))
            }
            try expect(await storage.contains(first), "the artifact has left its old location")
            return first
          }
          let second = try await storage.publish(first, of: nil, at: taken, in: try await context(key))
          try await expectMoved(first, to: second, bytes)
          switch conflict {
          case .replaces:
            try expectEqual(second.name, occupant.name, "the name")
          case .keepsBoth:
            try expect(second.name != occupant.name, "both have the name \(occupant.name)")
            try await expectPublished(occupant, other)
            let third = try await storage.publish(second, of: nil, at: taken, in: try await context(key))
            try expectEqual(third.name, second.name, "the name the second time")
          case .reuses, .fails, nil: break
          }
          return second
        }
        return occupant
      }
    }
    await report.check(
      "moving-again-after-success", "moving again with the last note finds the moved artifact",
      needs: ["moving", "publishing-again-after-success", "publishing-again-after-a-crash"]
    ) {
      try await withPublished(bytes, at: newName()) { first, key in
        let destination = newName()
        let notes = Watched<[String]>([])
        let second = try await storage.publish(
          first, of: nil, at: destination, in: try await context(key) { note in notes.update { $0.append(note) } })
        let third = try await storage.publish(
          first, of: nil, at: destination, in: try await context(key, priorNote: notes.value.last))
        try expectEqual(third.location, second.location, "the location after moving again")
        try expectEqual(third.name, second.name, "the name after moving again")
        try await expectMoved(first, to: third, bytes)
        return third
      }
    }
    await report.check(
      "moving-again-after-a-crash", "moving again after a crash during the move completes it",
      needs: ["moving", "moving-conflict", "moving-again-after-success", "publishing-again-after-a-crash"]
    ) {
      try await withPublished(bytes, at: newName()) { first, key in
        let destination = newName()
        let notes = Watched<[String]>([])
        do {
          // A storage that writes no note has moved it; the previous rule checks that.
          return try await storage.publish(
            first, of: nil, at: destination,
            in: try await context(key) { note in
              notes.update { $0.append(note) }
              throw Crash()
            })
        } catch {
          guard let note = notes.value.last else { throw error }
          try expect(await storage.contains(first), "the artifact has left its old location")
          let second = try await storage.publish(
            first, of: nil, at: destination, in: try await context(key, priorNote: note))
          try expectEqual(second.name, destination.name ?? "", "the name")
          try await expectMoved(first, to: second, bytes)
          return second
        }
      }
    }
    await report.check(
      "moving-to-unsafe-places", "an unsafe destination is refused and the artifact stays",
      needs: [
        "moving", "moving-conflict", "unsafe-names-are-refused", "unsafe-folders-are-refused",
        "publishing-into-a-folder",
      ]
    ) {
      try await withPublished(bytes, at: newName()) { first, key in
        for destination in [
          DownloadRequest.Destination(name: "../x"), .init(name: ".."), .init(directory: "..", name: "x"),
          .init(directory: "/etc", name: "downpipe-conformance"),
        ] {
          try await expectError(.unsafePath, when: "moving to \(destination)") {
            _ = try await storage.publish(first, of: nil, at: destination, in: try await context(key))
          }
        }
        try expect(await storage.contains(first), "the artifact has left its old location")
        return first
      }
    }
  }

  /// Publishes bytes and removes their partial; removes the artifact that `body` returns.
  private func withPublished(
    _ bytes: [UInt8], at destination: DownloadRequest.Destination,
    _ body: (Artifact, PartialKey) async throws -> Artifact
  ) async throws {
    var published: (Artifact, PartialKey)?
    try await withStaged(bytes, as: "conformance.bin") { staged, key in
      published = (try await storage.publish(staged, of: nil, at: destination, in: try await context(key)), key)
    }
    guard let (artifact, key) = published else { return }
    do {
      let last = try await body(artifact, key)
      try await storage.removePartial(key)
      try await storage.remove(last)
    } catch {
      try? await storage.removePartial(key)
      try? await storage.remove(artifact)
      throw error
    }
  }

  private func expectMoved(_ first: Artifact, to second: Artifact, _ bytes: [UInt8]) async throws {
    try await expectPublished(second, bytes)
    try expectEqual(second.size, .known(Int64(bytes.count)), "the size")
    try expect(await storage.contains(second), "contains(_:) is false for \(second.name)")
    try expect(!storage.isStaged(second), "isStaged(_:) is true for \(second.name)")
    try expect(!(await storage.contains(first)), "contains(_:) is true for the old location")
    if let path = first.path {
      try expect(!FileManager.default.fileExists(atPath: path), "there is a file at \(path)")
    }
  }
}
