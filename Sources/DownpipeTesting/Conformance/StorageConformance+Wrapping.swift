import DownpipeCore
import Foundation

extension StorageConformance {
  /// The optional abilities of a storage and its partials, in text.
  private struct Abilities {
    var answers: [(what: String, answer: String)] = []

    init(_ storage: any Storage, _ key: PartialKey) async throws {
      note("location", try storage.location ?? "none")
      let locations: [String?] = [nil, try storage.location, "of another one"]
      for location in locations {
        note("isLocated(at:) \(location ?? "unknown")", "\(await storage.isLocated(at: location))")
      }
      note("durability", storage.durability.rawValue)
      note("partials()", try await storage.partials() == nil ? "nil" : "a list")
      note("availableBytes()", try await storage.availableBytes() == nil ? "nil" : "a number")
      for destination in [
        DownloadRequest.Destination(), .init(name: "conformance.bin"), .init(name: "../x"), .init(directory: "/etc"),
        .init(directory: "a/../..", name: "x"),
      ] {
        note("check(_:) of \(destination)", Self.outcome { try storage.check(destination) })
      }
      try await look(at: storage, key)
    }

    private mutating func look(at storage: any Storage, _ key: PartialKey) async throws {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      let file = try folder.write(DownloadFixtures.pattern(size: 100), to: "file")
      let partial = try await storage.openPartial(key, isNew: true)
      do {
        note("isNamed of a new partial", "\(partial.isNamed)")
        try partial.put(DownloadFixtures.pattern(size: 1000), at: 0)
        try partial.persist()
        note("isNamed after persist()", "\(partial.isNamed)")
        let mark = try partial.mark(endingAt: 1000)
        note("mark(endingAt:)", mark == nil ? "nil" : "a mark")
        if let mark {
          try partial.put([0, 0, 0], at: 0)
          note("matches(_:) when bytes have changed", "\(try partial.matches(mark))")
        }
        note("copy(_:count:)", try await partial.copy(file, count: 100) == nil ? "nil" : "a number")
        do {
          try await partial.export(to: folder.path("exported"), count: 100)
          note("export(to:count:)", "done")
        } catch {
          note("export(to:count:)", "\((error as? DownloadError)?.code.rawValue ?? "an error")")
        }
      } catch {
        try? partial.close()
        try? await storage.removePartial(key)
        throw error
      }
      try partial.close()
      try await storage.removePartial(key)
    }

    private mutating func note(_ what: String, _ answer: String) { answers.append((what, answer)) }

    private static func outcome(_ body: () throws -> Void) -> String {
      do { try body() } catch { return (error as? DownloadError)?.code.rawValue ?? "\(error)" }
      return "none"
    }
  }

  /// A wrapper that does not forward an optional method uses its default, which the compiler does not report.
  func checkWrapping(_ report: ConformanceReport) async {
    await report.check(
      "wrapper-loses-nothing", "a wrapper has all abilities of the storage that it wraps",
      when: wrapped != nil
    ) {
      guard let wrapped else { return }
      let base = try await Abilities(wrapped, newKey())
      let own = try await Abilities(storage, newKey())
      for (own, base) in zip(own.answers, base.answers) {
        try expectEqual(own.answer, base.answer, own.what)
      }
    }
  }
}
