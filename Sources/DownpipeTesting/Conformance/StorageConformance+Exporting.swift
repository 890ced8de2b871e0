import DownpipeCore
import Foundation

extension StorageConformance {
  func checkExporting(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 200_000)
    await report.check("exporting", "exporting copies the first bytes of a partial to a new file and keeps the partial")
    {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      try await withPartial { partial, _ in
        try partial.put(bytes[..<150_000], at: 0)
        guard try await canExport(partial, folder) else { return }
        for count in [0, 1, 149_999, 150_000] as [Int64] {
          try await partial.export(to: folder.path("\(count)"), count: count)
          try expect(
            try folder.read("\(count)") == Array(bytes[..<Int(count)]), "the file of \(count) bytes differs")
        }
        try partial.put(bytes[150_000...], at: 150_000)
        try expect(try partial.read(at: 0, count: 300_000) == bytes, "the partial has changed")
        try expect(try folder.read("150000") == Array(bytes[..<150_000]), "the file changes with the partial")
      }
    }
    await report.check("exporting-nothing-else", "an export that fails leaves no file") {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      try await withPartial { partial, _ in
        try partial.put(bytes[..<1000], at: 0)
        guard try await canExport(partial, folder) else { return }
        let kept = try folder.write([9, 9], to: "kept")
        try await expectError(.alreadyExists, when: "exporting to an existing file") {
          try await partial.export(to: kept, count: 10)
        }
        try expectEqual(try folder.read("kept"), [9, 9], "the existing file")
        try await expectError(.storage, when: "exporting 1001 of 1000 bytes") {
          try await partial.export(to: folder.path("longer"), count: 1001)
        }
        try await expectError(.storage, when: "exporting into a missing folder") {
          try await partial.export(to: folder.path("missing/file"), count: 10)
        }
        try expectEqual(try folder.contents(), ["kept"], "the files")
      }
    }
  }

  /// Whether the storage supports exporting.
  private func canExport(_ partial: any Partial, _ folder: TemporaryFolder) async throws -> Bool {
    do {
      try await partial.export(to: folder.path("probe"), count: 0)
    } catch let error as DownloadError where error.code == .storage {
      return false
    }
    try FileManager.default.removeItem(atPath: folder.path("probe"))
    return true
  }
}
