import DownpipeCore
import Foundation

extension StorageConformance {
  func checkHolding(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 1000)
    await report.check(
      "held-partial-is-in-use", "an open partial cannot be opened again, and the attempt does not affect it"
    ) {
      try await withPartial { partial, key in
        try partial.put(bytes[..<500], at: 0)
        for _ in 0..<2 {
          try await expectError(.inUse, when: "opening a partial that is open") {
            let second = try await storage.openPartial(key, isNew: false)
            try second.close()
          }
        }
        try partial.put(bytes[500...], at: 500)
        try expect(try partial.read(at: 0, count: 2000) == bytes, "the bytes of the first opening differ")
      }
    }
    await report.check("second-partial", "the two partials of a download are apart") {
      try await withPartial { partial, key in
        try partial.put(bytes, at: 0)
        try await partial.synchronize()
        try await withOpenPartial(key.other) { second in
          try expectEqual(try second.size(), 0, "the size of the second partial")
          try second.put([1, 2, 3], at: 0)
          try await second.synchronize()
        }
        try expect(try partial.read(at: 0, count: 2000) == bytes, "the bytes of the first partial differ")
        try await withOpenPartial(key.other) { second in
          try expectEqual(try second.read(at: 0, count: 10), [1, 2, 3], "the bytes of the second partial")
        }
        try await storage.removePartial(key.other)
        try expect(try partial.read(at: 0, count: 2000) == bytes, "the bytes of the first partial are gone")
      }
    }
    await report.check("closing-frees-a-partial", "a partial that was closed can be opened again") {
      let key = newKey()
      for round in 0..<3 {
        try await withOpenPartial(key) { try $0.put([UInt8(round)], at: Int64(round)) }
      }
      try await withPartial(key) { partial, _ in
        try expectEqual(try partial.read(at: 0, count: 10), [0, 1, 2], "the bytes")
      }
    }
    await report.check(
      "finished-partial-stays-held", "a finished partial cannot be written, and cannot be opened before it is closed",
      needs: ["closed-partial-refuses-writes"]
    ) {
      try await withPartial { partial, key in
        try partial.put(bytes, at: 0)
        try partial.finish()
        try await expectError(when: "writing to a finished partial") { try partial.put([1], at: 0) }
        try await expectError(.inUse, when: "opening a partial that is finished and not closed") {
          let second = try await storage.openPartial(key, isNew: false)
          try second.close()
        }
        try expectEqual(try partial.artifact(name: "a", mediaType: nil).size, .known(1000), "the artifact's size")
        try partial.close()
        let second = try await storage.openPartial(key, isNew: false)
        try expect(try second.read(at: 0, count: 2000) == bytes, "the bytes differ")
        try second.close()
      }
    }
    await report.check("listing", "existing partials are listed with their size and whether they are open") {
      guard try await storage.partials() != nil else { return }
      try await withPartial { partial, key in
        try partial.put(bytes, at: 0)
        try await partial.synchronize()
        try await expectListed(StoredPartial(key: key, size: 1000, isInUse: true))
        let closed = newKey(key.id, generation: 2)
        try await withOpenPartial(closed) { try $0.put([1], at: 0) }
        try await expectListed(StoredPartial(key: closed, size: 1, isInUse: false))
        try await storage.removePartial(closed)
        let keys = try await listed().map(\.key)
        try expect(keys.contains(key) && !keys.contains(closed), "a removed partial is listed, or another one is not")
      }
    }
    await report.check("space", "the free space is not negative") {
      guard let available = try await storage.availableBytes() else { return }
      try expect(available >= 0, "it is negative")
    }
  }

  private func listed() async throws -> [StoredPartial] {
    try expectValue(try await storage.partials(), "the storage does not list its partials any more")
  }

  private func expectListed(_ partial: StoredPartial) async throws {
    let found = try await listed().filter { $0.key == partial.key }
    try expectEqual(found, [partial], "the listed partials")
  }

  func checkMarks(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 200_000)
    await report.check("marks", "a mark matches if and only if its bytes are unchanged") {
      for end in [1, 1000, 65_536, 131_073, 200_000] as [Int64] {
        try await withPartial { partial, _ in
          try partial.put(bytes, at: 0)
          guard let mark = try partial.mark(endingAt: end) else { return }
          try expectEqual(mark.range.upperBound, end, "the end of the mark")
          try expect(mark.range.lowerBound >= 0 && !mark.range.isEmpty, "the mark covers \(mark.range)")
          try expect(try partial.matches(mark), "the mark of \(mark.range) does not match")
          for position in Set([mark.range.lowerBound, mark.range.upperBound - 1]) {
            try partial.put([~bytes[Int(position)]], at: position)
            try expect(!(try partial.matches(mark)), "it matches after byte \(position) has changed")
            try partial.put([bytes[Int(position)]], at: position)
            try expect(try partial.matches(mark), "it does not match after byte \(position) was restored")
          }
          if end < 200_000 { try partial.put([~bytes[Int(end)]], at: end) }
          try expect(try partial.matches(mark), "it does not match after a later byte has changed")
          try partial.truncate(to: end - 1)
          try expect(!(try partial.matches(mark)), "it matches when its last byte is missing")
        }
      }
    }
    await report.check("marks-of-what-is-not-there", "missing bytes cannot be marked") {
      try await withPartial { partial, _ in
        try partial.put(bytes[..<100], at: 0)
        guard try partial.mark(endingAt: 100) != nil else { return }
        try await expectError(.storage, when: "marking the block before byte 101 of 100") {
          _ = try partial.mark(endingAt: 101)
        }
      }
    }
    await report.check("marks-survive-reopening", "a mark matches after the partial is opened again") {
      let key = newKey()
      let marks = Watched<[BlockMark]>([])
      try await withOpenPartial(key) { partial in
        try partial.put(bytes, at: 0)
        guard let mark = try partial.mark(endingAt: 150_000) else { return }
        marks.update { $0 = [mark] }
        try await partial.synchronize()
      }
      try await withPartial(key) { partial, _ in
        guard let mark = marks.value.first else { return }
        try expect(try partial.matches(mark), "it does not match")
      }
    }
  }

  func checkCopying(_ report: ConformanceReport) async {
    let bytes = DownloadFixtures.pattern(size: 200_000)
    await report.check(
      "copying-a-file", "copying replaces the bytes of the partial with the first bytes of a file and keeps the file"
    ) {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      let file = try folder.write(bytes, to: "conformance file")
      for (asked, copied) in [(150_000, 150_000), (200_000, 200_000), (300_000, 200_000), (0, 0)] as [(Int64, Int64)] {
        try await withPartial { partial, _ in
          try partial.put([UInt8](repeating: 9, count: 250_000), at: 0)
          guard let count = try await partial.copy(file, count: asked) else { return }
          try expectEqual(count, copied, "the bytes copied of \(asked)")
          try expectEqual(try partial.size(), copied, "the size")
          try expect(
            try partial.read(at: 0, count: 300_000) == Array(bytes[..<Int(copied)]), "the bytes differ")
          try partial.put([7], at: copied)
          try expectEqual(try partial.read(at: copied, count: 1), [7], "a byte written afterwards")
        }
      }
      try expect(try folder.read("conformance file") == bytes, "the file has changed")
    }
    await report.check("copying-what-is-no-file", "copying a missing file, a folder or a link causes an error") {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      let file = try folder.write(bytes, to: "file")
      let link = folder.path("link")
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
      for path in [folder.path("missing"), folder.path, link] {
        try await withPartial { partial, _ in
          guard try await partial.copy(file, count: 10) != nil else { return }
          try await expectError(when: "copying \(path)") { _ = try await partial.copy(path, count: 10) }
        }
      }
    }
  }
}
