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

/// Publishing partials while they are open, as the engine does.
@Suite(.endsHangs)
struct HeldPublishTests {
  private static let partialName = ".downpipe/partials/id.1.part"

  /// Issue 8, defect 10.
  @Test(arguments: Ground.systems.indices, [false, true])
  func aFailureBeforeTheFirstByteLeavesNothing(_ system: Int, _ isNew: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Ground.systems[system])
    let partial = try await store.openPartial(key(), isNew: isNew)
    #expect(try partial.size() == 0 && partial.read(at: 0, count: 9) == [])
    try partial.put([], at: 0)
    try partial.truncate(to: 0)
    try await partial.synchronize()
    try partial.finish()
    try partial.close()
    #expect(try await store.partials() == [])
    #expect(try folder.tree().isEmpty)
  }

  @Test(arguments: [EMFILE, EACCES])
  func aNewPartialMakesNoCallsBeforeItsFirstByte(_ number: CInt) async throws {
    let folder = try TemporaryFolder()
    let calls = Calls { _, call, _ in call == .openUnnamed ? .fail(number) : .proceed }
    let partial = try await FileStore(folder.path, system: calls.system).openPartial(key(), isNew: true)
    #expect(calls.made.isEmpty)
    #expect(throws: DownloadError.self) { try partial.put([1], at: 0) }
    try partial.close()
    #expect(try folder.tree().isEmpty)
  }

  @Test(.enabled(if: Ground.hasUnnamedFiles, "needs files without a name"))
  func closingDeletesAFileWithoutAName() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try await store.staged([1, 2, 3])
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put(someBytes, at: 0)
    #expect(try folder.tree() == [Self.partialName: [1, 2, 3]])
    try partial.close()
    #expect(try folder.tree() == [Self.partialName: [1, 2, 3]])
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var system: Int
    var policy: ConflictPolicy
    var durability: Durability
    var isPersisted: Bool
    var testDescription: String { "system \(system) \(policy) \(durability) \(isPersisted ? "named" : "unnamed")" }
  }

  static let cases: [Case] = {
    var all: [Case] = []
    for system in Ground.systems.indices {
      for policy in ConflictPolicy.allCases {
        for durability in [Durability.process, .power] {
          for isPersisted in [false, true] {
            all.append(Case(system: system, policy: policy, durability: durability, isPersisted: isPersisted))
          }
        }
      }
    }
    return all
  }()

  @Test(arguments: cases)
  func openPartialsArePublished(_ given: Case) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(
      folder.path, onConflict: given.policy, durability: given.durability, system: Ground.systems[given.system])
    for bytes in [someBytes, []] {
      let name = bytes.isEmpty ? "empty" : "full"
      let artifact = try await store.publishHeld(bytes, directory: "a", name: name) { partial in
        if given.isPersisted { try partial.persist() }
      }
      #expect(artifact.path == folder.path("a/\(name)") && artifact.size == .known(Int64(bytes.count)))
      #expect(await store.contains(artifact))
    }
    #expect(try folder.tree() == ["a/full": someBytes, "a/empty": []])
    if given.policy == .fail { return }
    let second = try await store.publishHeld(otherBytes, directory: "a", name: "full") { partial in
      if given.isPersisted { try partial.persist() }
    }
    #expect(second.name == (given.policy == .replace ? "full" : "full (1)"))
    #expect(try folder.read("a/" + second.name) == otherBytes)
    #expect(try folder.tree().count == (given.policy == .replace ? 2 : 3))
  }

  /// Issue 8, defect 2: `cp x.part y; mv y x.part` while it is written.
  @Test(arguments: cases.filter(\.isPersisted))
  func aReplacedPartialIsPublishedAsItWasWritten(_ given: Case) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(
      folder.path, onConflict: given.policy, durability: given.durability, system: Ground.systems[given.system])
    let artifact = try await store.publishHeld(Array(someBytes[..<40_000]), name: "x") { partial in
      try partial.persist()
      try FileManager.default.copyItem(atPath: folder.path(Self.partialName), toPath: folder.path("y"))
      #expect(rename(folder.path("y"), folder.path(Self.partialName)) == 0)
      try partial.put(Array(someBytes[40_000...]), at: 40_000)
    }
    #expect(artifact.size == .known(Int64(someBytes.count)))
    #expect(try folder.read("x") == someBytes)
    try await store.removePartial(key())
    #expect(try folder.tree() == ["x": someBytes])
  }

  @Test(arguments: [10, 70_001])
  func aPartialOfAnotherLengthIsNotPublished(_ length: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    await #expect {
      try await store.publishHeld(someBytes, name: "x") { partial in
        try partial.persist()
        #expect(truncate(folder.path(Self.partialName), length) == 0)
      }
    } throws: { ($0 as? DownloadError)?.code == .contentChanged }
    #expect(!FileManager.default.fileExists(atPath: folder.path("x")))
  }

  @Test func onlyAFileWithANameNeedsANote() async throws {
    let folder = try TemporaryFolder()
    for durability in [Durability.process, .power] {
      for isPersisted in [false, true] {
        let notes = Notes()
        _ = try await FileStore(folder.path, durability: durability).publishHeld([1], name: "x", notes: notes) {
          if isPersisted { try $0.persist() }
        }
        #expect(notes.all.isEmpty == (durability == .process && !isPersisted && Ground.hasUnnamedFiles))
      }
    }
  }

  /// A run that ended after the link leaves only the file.
  @Test(.enabled(if: Ground.hasUnnamedFiles, "needs files without a name"))
  func theResultOfAnInterruptedRunIsFoundByItsBytes() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let first = try await store.publishHeld(someBytes, name: "x")
    let again = try await store.publishHeld(someBytes, name: "x", wasInterrupted: true)
    #expect(again == first)
    #expect(try await store.publishHeld(otherBytes, name: "x", wasInterrupted: true).name == "x (1)")
    #expect(try await store.publishHeld(otherBytes, name: "x", wasInterrupted: true).name == "x (1)")
    #expect(try await store.publishHeld(someBytes, name: "x").name == "x (2)")
    let strict = FileStore(folder.path, onConflict: .fail)
    #expect(try await strict.publishHeld(someBytes, name: "x", wasInterrupted: true) == first)
    await #expect { try await strict.publishHeld(someBytes, name: "x") } throws: {
      ($0 as? DownloadError)?.code == .alreadyExists
    }
    #expect(try folder.tree() == ["x": someBytes, "x (1)": otherBytes, "x (2)": someBytes])
  }

  /// Publishing ends at each of its calls in turn, and the download starts again. Then one file exists, and nothing
  /// else.
  @Test(arguments: cases)
  func publishingSurvivesAnEndAtEachCall(_ given: Case) async throws {
    for last in 1... {
      let folder = try TemporaryFolder()
      _ = try folder.write([9], to: "taken")
      let hasDied = Atomic(false)
      let notes = Notes()
      let calls = Calls { number, call, path in
        guard number <= last || call == .close else {
          hasDied.store(true, ordering: .relaxed)
          return .fail(EIO)
        }
        return Ground.systems[given.system].intercept?(call, path) ?? .proceed
      }
      let name = given.policy == .fail ? "free" : "taken"
      let destination = DownloadRequest.Destination(name: name)
      let dying = FileStore(
        folder.path, onConflict: given.policy, durability: given.durability, system: calls.system)
      _ = try? await dying.publishHeld(someBytes, name: name, notes: notes) { partial in
        if given.isPersisted { try partial.persist() }
      }
      let store = FileStore(folder.path, onConflict: given.policy, durability: given.durability)
      // The ledger has the note, or knows that the process ended.
      let artifact: Artifact
      if let note = notes.last {
        let staged = Artifact(
          location: .path(folder.path(Self.partialName)), name: name, size: .known(Int64(someBytes.count)))
        let isThere = await store.contains(staged)
        if let found = try? await store.publish(
          staged, of: nil, at: destination, in: try context(destination: destination, prior: note))
        {
          artifact = found
        } else {
          #expect(!isThere, "dead after call \(last)")
          artifact = try await store.publishHeld(someBytes, name: name, wasInterrupted: true)
        }
      } else {
        artifact = try await store.publishHeld(someBytes, name: name, wasInterrupted: true)
      }
      try await store.removePartial(key())
      // A claim can be left.
      #expect(try await store.partials() == [])
      var expected: [String: [UInt8]] = given.policy == .replace ? [:] : ["taken": [9]]
      expected[artifact.name] = someBytes
      #expect(try folder.tree() == expected, "dead after call \(last)")
      #expect(
        artifact.name == (given.policy == .fail ? "free" : given.policy == .replace ? "taken" : "taken (1)"),
        "dead after call \(last)")
      if !hasDied.load(ordering: .relaxed) { return }
    }
  }

  @Test(.enabled(if: SmallMount.isPossible, "needs the right to mount"), arguments: [false, true])
  func anOpenFileIsCopiedToAnotherFileSystem(_ isPersisted: Bool) async throws {
    let folder = try TemporaryFolder()
    let mount = try SmallMount(folder.path("root/other"))
    let store = FileStore(folder.path("root"))
    let artifact = try await store.publishHeld(someBytes, directory: "other", name: "x") {
      if isPersisted { try $0.persist() }
    }
    #expect(artifact.path == mount.path + "/x")
    #expect(try folder.tree() == ["root/other/x": someBytes])
    // No open folder keeps the file system busy.
    #if canImport(Glibc)
      #expect(umount2(mount.path, 0) == 0)
    #endif
    mount.unmount()
  }

  @Test(arguments: [false, true])
  func withoutHardLinksTheNameIsRenamed(_ isPersisted: Bool) async throws {
    let folder = try TemporaryFolder()
    let calls = Calls { _, call, path in call == .link && path.hasPrefix("x") ? .fail(EPERM) : .proceed }
    let store = FileStore(folder.path, system: calls.system)
    _ = try await store.publishHeld(someBytes, name: "x") { if isPersisted { try $0.persist() } }
    #expect(try await store.publishHeld([1], name: "x").name == "x (1)")
    #expect(try folder.tree() == ["x": someBytes, "x (1)": [1]])
  }

  // MARK: Folders that are held open

  @Test func aMovedFolderIsCreatedAgain() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("root"))
    let open = try await store.openPartial(key("open"), isNew: true)
    for name in ["films", nil] as [String?] {
      let path = folder.path(name.map { "root/" + $0 } ?? "root")
      _ = try await store.publishHeld([1], directory: name, name: "x")
      try FileManager.default.moveItem(atPath: path, toPath: folder.path("moved-\(name ?? "")"))
      let second = try await store.publishHeld([2], directory: name, name: "x")
      #expect(second.path == path + "/x")
      #expect(FileManager.default.contents(atPath: path + "/x").map(Array.init) == [2])
      try FileManager.default.removeItem(atPath: path)
      #expect(try await store.publishHeld([3], directory: name, name: "x").path == path + "/x")
    }
    try open.close()
  }

  @Test func aFolderThatBecomesALinkIsNotFollowed() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("outside")
    let store = FileStore(folder.path("root"))
    let open = try await store.openPartial(key("open"), isNew: true)
    _ = try await store.publishHeld([1], directory: "films", name: "x")
    let films = folder.path("root/films")
    for target in [folder.path("outside"), folder.path("root/moved")] {
      if target.hasSuffix("moved") {
        try FileManager.default.removeItem(atPath: films)
        try folder.makeFolder("root/films")
        _ = try await store.publishHeld([1], directory: "films", name: "y")
      }
      try FileManager.default.moveItem(atPath: films, toPath: folder.path("root/moved"))
      try FileManager.default.createSymbolicLink(atPath: films, withDestinationPath: target)
      await #expect {
        try await store.publishHeld([2], directory: "films", name: "x")
      } throws: { ($0 as? DownloadError)?.code == .unsafePath }
      if !target.hasSuffix("moved") { try FileManager.default.removeItem(atPath: folder.path("root/moved")) }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("outside")).isEmpty)
    try open.close()
  }
}
