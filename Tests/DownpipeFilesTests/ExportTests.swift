import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Exporting the first bytes of an unfinished download to a file.
@Suite(.endsHangs)
struct ExportTests {
  @Test func anOpenPartialIsExported() async throws {
    let folder = try TemporaryFolder()
    // With a name, and without one.
    for isNew in [true, false] {
      for durability in [Durability.process, .power] {
        let store = FileStore(folder.path("root"), durability: durability)
        let partial = try await store.openPartial(key(), isNew: isNew)
        let bytes = DownloadFixtures.pattern(size: 2_500_000)
        try partial.put(bytes, at: 0)
        let file = folder.path("\(isNew) \(durability)")
        try await partial.export(to: file, count: 2_400_001)
        let isEqual = try folder.read("\(isNew) \(durability)") == Array(bytes[..<2_400_001])
        #expect(isEqual)
        try partial.close()
        try await store.removePartial(key())
      }
    }
  }

  @Test(arguments: [FileSystem.Call.write, .flush, .close, .link], [true, false])
  func aFailedExportLeavesNothing(_ failing: FileSystem.Call, hasUnnamedFiles: Bool) async throws {
    let folder = try TemporaryFolder()
    let armed = Atomic(false)
    let calls = Calls { _, call, _ in
      guard armed.load(ordering: .relaxed) else { return .proceed }
      if call == .openUnnamed, !hasUnnamedFiles { return .fail(EOPNOTSUPP) }
      return call == failing ? .fail(ENOSPC) : .proceed
    }
    let store = FileStore(folder.path("root"), durability: .power, system: calls.system)
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put(someBytes, at: 0)
    armed.store(true, ordering: .relaxed)
    await #expect { try await partial.export(to: folder.path("out"), count: 1000) } throws: {
      ($0 as? DownloadError)?.code == .noSpace
    }
    armed.store(false, ordering: .relaxed)
    #expect(try folder.contents().allSatisfy { $0.hasPrefix("root") })
    try partial.close()
  }

  @Test func aCancelledExportLeavesNothing() async throws {
    let folder = try TemporaryFolder()
    let partial = try await FileStore(folder.path).openPartial(key(), isNew: false)
    try partial.put(someBytes, at: 0)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await partial.export(to: folder.path("out"), count: 1000)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(!FileManager.default.fileExists(atPath: folder.path("out")))
  }

  // MARK: Whole or not at all

  /// The kind of file system.
  enum Ground: String, CaseIterable, Sendable {
    case plain, withoutUnnamedFiles, unnamedFilesCannotBeLinked, withoutHardLinks, withoutExclusiveRename

    func verdict(_ call: FileSystem.Call, _ isUnnamed: Bool) -> FileSystem.Verdict {
      switch (self, call) {
      case (.withoutUnnamedFiles, .openUnnamed), (.withoutHardLinks, .openUnnamed),
        (.withoutExclusiveRename, .openUnnamed):
        .fail(EOPNOTSUPP)
      case (.unnamedFilesCannotBeLinked, .link) where isUnnamed: .fail(ENOENT)
      case (.withoutHardLinks, .link), (.withoutExclusiveRename, .link): .fail(EPERM)
      case (.withoutExclusiveRename, .renameToFree): .fail(EINVAL)
      default: .proceed
      }
    }
  }

  private static let copied = DownloadFixtures.pattern(size: 1000)

  /// Exports 1000 bytes in two writes.
  private func export(
    to path: String, _ system: FileSystem, _ durability: Durability = .process, afterHalf: () throws -> Void = {}
  ) throws {
    try ExportedFile(path, count: 1000, durability: durability, system: system).make { file in
      for offset in [0, 500] {
        try Self.copied[offset..<(offset + 500)].withUnsafeBytes { try file.write($0, at: Int64(offset)) }
        if offset == 0 { try afterHalf() }
      }
      return 1000
    }
  }

  /// A file system of a kind on which no call after the last one is made, as in a process that was killed.
  private func calls(_ ground: Ground, last: Int = .max, _ isDead: @escaping @Sendable () -> Void = {}) -> Calls {
    let links = Atomic(0)
    return Calls { number, call, path in
      if number > last {
        isDead()
        // The system closes the descriptors of a killed process.
        if call != .close { return .fail(EIO) }
      }
      let isFirstLink = call == .link && links.add(1, ordering: .relaxed).oldValue == 0
      return ground.verdict(call, isFirstLink)
    }
  }

  @Test("When the process ends at any call, the file has all the bytes or does not exist", arguments: Ground.allCases)
  func exportingSurvivesAnEndAtEachCall(_ ground: Ground) throws {
    for durability in [Durability.process, .power] {
      for last in 0... {
        let folder = try TemporaryFolder()
        let isDead = Atomic(false)
        let system = calls(ground, last: last) { isDead.store(true, ordering: .relaxed) }.system
        let isMade = (try? export(to: folder.path("out"), system, durability)) != nil
        let files = try folder.tree()
        let when = "\(durability), dead after call \(last): \(files.mapValues(\.count))"
        if isMade { #expect(files["out"] == Self.copied, "\(when)") }
        if let out = files["out"] {
          // An empty file reserves the name until the rename, where nothing else can.
          #expect(out == Self.copied || (ground == .withoutExclusiveRename && out.isEmpty), "\(when)")
        }
        #expect(files.keys.allSatisfy { $0 == "out" || $0.hasPrefix(".downpipe-") }, "\(when)")
        if !isDead.load(ordering: .relaxed) {
          #expect(isMade && files.count == 1, "\(when)")
          break
        }
      }
    }
  }

  @Test("The name appears with the last byte, and nothing else stays", arguments: Ground.allCases)
  func theFileGetsItsNameWhenItIsComplete(_ ground: Ground) throws {
    let folder = try TemporaryFolder()
    try export(to: folder.path("out"), calls(ground).system) {
      #expect(!FileManager.default.fileExists(atPath: folder.path("out")))
    }
    #expect(try folder.tree() == ["out": Self.copied])
  }

  @Test("What takes the name meanwhile keeps it", arguments: Ground.allCases)
  func aNameThatIsTakenMeanwhileIsNotReplaced(_ ground: Ground) throws {
    let folder = try TemporaryFolder()
    let error = #expect(throws: DownloadError.self) {
      try export(to: folder.path("out"), calls(ground).system) { _ = try folder.write([9], to: "out") }
    }
    #expect(error?.code == .alreadyExists)
    #expect(try folder.tree() == ["out": [9]])
  }

  @Test("Partials in a file and in memory are exported so")
  func partialsUseTheSameCalls() async throws {
    let folder = try TemporaryFolder()
    let out = folder.path("out")
    let armed = Atomic(false)
    let writes = Atomic(0)
    let calls = Calls { _, call, _ in
      if armed.load(ordering: .relaxed), call == .write {
        writes.add(1, ordering: .relaxed)
        if FileManager.default.fileExists(atPath: out) { return .fail(EEXIST) }
      }
      return .proceed
    }
    let store = FileStore(folder.path("root"), system: calls.system)
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put(someBytes, at: 0)
    armed.store(true, ordering: .relaxed)
    try await partial.export(to: out, count: 60_000)
    armed.store(false, ordering: .relaxed)
    #expect(writes.load(ordering: .relaxed) > 0)
    let isEqual = try folder.read("out") == Array(someBytes[..<60_000])
    #expect(isEqual)
    try partial.close()
    #expect(try folder.contents().filter { $0.contains(".downpipe-") } == [])
  }
}
