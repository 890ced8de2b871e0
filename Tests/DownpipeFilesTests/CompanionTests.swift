import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeFiles

/// Artifacts with companions: published, moved and removed together.
@Suite(.endsHangs)
struct CompanionTests {
  private static let bytes = Array("picture".utf8)
  private static let companions = [".t.png": Array("thumbnail".utf8), "-2": Array("two".utf8)]
  private static let suffixes = [".t.png", "-2"]
  private static let foreign = Array("foreign".utf8)

  /// A file and its companions, as they are in a tree.
  private static func files(_ path: String) -> [String: [UInt8]] {
    var files = [path: bytes]
    for (suffix, bytes) in companions { files[path + suffix] = bytes }
    return files
  }

  private func staged(_ store: FileStore, name: String = "x.bin", _ suffixes: [String] = suffixes) async throws
    -> Artifact
  {
    var file = File(try await store.staged(Self.bytes, name: name))
    let workspace = try #require(try await store.workspace(key()))
    for (index, suffix) in suffixes.enumerated() {
      try Data(Self.companions[suffix] ?? []).write(to: URL(filePath: "\(workspace)/\(index)"))
      file = file.withCompanion(at: "\(workspace)/\(index)", suffix: suffix)
    }
    return file.artifact
  }

  // MARK: Crashes

  /// Which names other programs have taken.
  enum Taken: String, CaseIterable, Sendable {
    case nothing, artifact, companion
    /// With the same bytes, if they are to be reused.
    case all
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    var policy: ConflictPolicy
    var ground: PublishCrashTests.Ground
    var durability: Durability
    var taken: Taken
    var testDescription: String { "\(policy) \(ground) \(durability) \(taken)" }

    var isReused: Bool { policy == .reuse && taken == .all }
    var isNumbered: Bool { taken != .nothing && policy != .replace && !isReused }
    var name: String { isNumbered ? "x (1).bin" : "x.bin" }

    /// What is in the folder before.
    var before: [String: [UInt8]] {
      let all = CompanionTests.files("root/there/x.bin")
      switch taken {
      case .nothing: return [:]
      case .artifact: return ["root/there/x.bin": CompanionTests.foreign]
      case .companion: return ["root/there/x.bin-2": CompanionTests.foreign]
      case .all: return policy == .reuse ? all : all.mapValues { _ in CompanionTests.foreign }
      }
    }

    /// What is there afterwards.
    var after: [String: [UInt8]] { before.merging(CompanionTests.files("root/there/" + name)) { $1 } }
  }

  static let scenarios: [Scenario] = {
    var all: [Scenario] = []
    for policy in ConflictPolicy.allCases {
      for ground in PublishCrashTests.Ground.allCases where ground != .otherFileSystem || SmallMount.isPossible {
        for taken in Taken.allCases {
          // A second call cannot complete what has failed, and the other grounds differ only in how a name is taken.
          if taken != .nothing, policy == .fail || (ground != .plain && taken != .companion) { continue }
          let durability: Durability = taken == .nothing ? .power : .process
          all.append(Scenario(policy: policy, ground: ground, durability: durability, taken: taken))
        }
      }
    }
    return all
  }()

  @Test(
    "An end at any call leaves nothing published, or what the second call completes", arguments: scenarios,
    [false, true])
  func anEndAtEachCall(_ scenario: Scenario, isMoved: Bool) async throws {
    for last in 1... {
      let folder = try TemporaryFolder()
      let mount = scenario.ground == .otherFileSystem ? try SmallMount(folder.path("root/there")) : nil
      defer { mount?.unmount() }
      let root = folder.path("root")
      let store = FileStore(root)
      var first = try await staged(store)
      if isMoved {
        first = try await store.publish(
          first, of: nil, at: .init(directory: "here", name: "first.bin"), in: try context())
        try await store.removePartial(key())
        #expect(try folder.tree().filter { $0.key.hasPrefix("root/here/") } == Self.files("root/here/first.bin"))
      }
      for (name, bytes) in scenario.before { try folder.write(bytes, to: name) }
      let notes = Notes()
      let isDead = Atomic(false)
      let calls = Calls { number, call, path in
        if number > last { isDead.store(true, ordering: .relaxed) }
        if number > last, call != .close { return .fail(EIO) }
        return scenario.ground.verdict(call, path)
      }
      let destination = DownloadRequest.Destination(directory: "there", name: "x.bin")
      let dying = FileStore(root, onConflict: scenario.policy, durability: scenario.durability, system: calls.system)
      let dyingContext = ProcessingContext(
        request: try DownloadRequest("http://a/b", id: "id", destination: destination), workspace: nil
      ) { note in
        if isDead.load(ordering: .relaxed) { throw SystemError(EIO) }
        notes.keep(note)
      }
      _ = try? await dying.publish(first, of: nil, at: destination, in: dyingContext)
      // Where the artifact is, its companions are.
      let half = try folder.tree()
      for path in ["root/there/x.bin", "root/there/x (1).bin"] where half[path] == Self.bytes {
        let there = half.filter { $0.key.hasPrefix(path) }
        #expect(there == Self.files(path), "dead after call \(last)")
      }
      let again = FileStore(
        root, onConflict: scenario.policy, durability: scenario.durability,
        system: Calls { _, call, path in scenario.ground.verdict(call, path) }.system)
      for round in 0..<2 {
        let published = try await again.publish(
          first, of: nil, at: destination, in: try context(destination: destination, prior: notes.last, notes: notes))
        let when = "dead after call \(last), round \(round)"
        #expect(published.path == folder.path("root/there/" + scenario.name), "\(when)")
        #expect(published.isReused == scenario.isReused, "\(when)")
        #expect(published.companions.map(\.suffix) == Self.suffixes, "\(when)")
        #expect(published.companions.map(\.path) == Self.suffixes.map { published.path! + $0 }, "\(when)")
        for file in published.companionFiles { #expect(await again.contains(file), "\(when)") }
        #expect(try folder.tree() == scenario.after, "\(when)")
      }
      if !isDead.load(ordering: .relaxed) { return }
    }
  }

  // MARK: Conflicts

  @Test("With .fail, nothing is placed if one of the names is taken", arguments: ["x.bin", "x.bin.t.png", "x.bin-2"])
  func failing(_ taken: String) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .fail)
    let artifact = try await staged(store)
    try folder.write(Self.foreign, to: taken)
    let before = try folder.tree()
    await #expect {
      try await store.publish(artifact, of: nil, at: .init(name: "x.bin"), in: try context())
    } throws: { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .alreadyExists && error.message.contains(folder.path(taken))
    }
    #expect(try folder.tree() == before)
  }

  @Test("What is not a file is not replaced by a companion")
  func replacingAFolder() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .replace)
    let artifact = try await staged(store)
    try folder.write(Self.foreign, to: "x.bin-2/inner")
    let before = try folder.tree()
    await #expect {
      try await store.publish(artifact, of: nil, at: .init(name: "x.bin"), in: try context())
    } throws: { ($0 as? DownloadError)?.code == .alreadyExists }
    #expect(try folder.tree() == before)
  }

  @Test("An open file is published with its companions", arguments: ConflictPolicy.allCases)
  func anOpenFile(_ policy: ConflictPolicy) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: policy)
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put(Self.bytes, at: 0)
    try partial.persist()
    try partial.finish()
    let workspace = try #require(try await store.workspace(key()))
    var file = File(try partial.artifact(name: "x.bin", mediaType: nil))
    for (index, suffix) in Self.suffixes.enumerated() {
      try Data(Self.companions[suffix] ?? []).write(to: URL(filePath: "\(workspace)/\(index)"))
      file = file.withCompanion(at: "\(workspace)/\(index)", suffix: suffix)
    }
    let published = try await store.publish(file.artifact, of: partial, at: .init(), in: try context())
    try partial.close()
    #expect(published.companions.count == 2)
    try await store.removePartial(key())
    #expect(try folder.tree() == Self.files("x.bin"))
  }

  @Test("A name with a number is kept while the name or that of a companion is taken")
  func numbers() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    try folder.write(Self.foreign, to: "x.bin-2")
    let first = try await store.publish(try await staged(store), of: nil, at: .init(), in: try context())
    #expect(first.name == "x (1).bin")
    let again = try await store.publish(first, of: nil, at: .init(name: "x.bin"), in: try context())
    #expect(again == first)
    try FileManager.default.removeItem(atPath: folder.path("x.bin-2"))
    let moved = try await store.publish(first, of: nil, at: .init(name: "x.bin"), in: try context())
    #expect(moved.name == "x.bin")
    #expect(try folder.tree() == Self.files("x.bin"))
  }

  @Test("The download replaces its own companions, and no others")
  func replacingItsOwn() async throws {
    for isForeign in [false, true] {
      let folder = try TemporaryFolder()
      let store = FileStore(folder.path)
      let old = try await store.publish(
        try await staged(store, [".t.png"]), of: nil, at: .init(name: "x.bin"), in: try context())
      if isForeign { try folder.write(Self.foreign, to: "x.bin-2") }
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/x.bin", id: "id"), workspace: nil, replaces: old)
      let new = try await store.publish(try await staged(store), of: nil, at: .init(name: "x.bin"), in: context)
      #expect(new.name == (isForeign ? "x (1).bin" : "x.bin"))
      if isForeign { try await store.remove(old) }
      #expect(try folder.tree() == Self.files(new.name).merging(isForeign ? ["x.bin-2": Self.foreign] : [:]) { $1 })
    }
  }

  // MARK: Moving and removing

  @Test func moveIntoMovesCompanions() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("store"))
    let step = try MoveInto(template: folder.path("films") + "/{host}/{stem} of {id}.{extension}")
    let moved = try await step.process(try await staged(store), in: try context())
    #expect(moved.name == "x of id.bin")
    #expect(try folder.tree() == Self.files("films/example.org/x of id.bin").merging(["store/": []]) { $1 })
    try await store.remove(moved)
    #expect(try folder.tree("films") == ["films/example.org/": []])
  }

  @Test("A companion that another program has changed or removed is left where it is", arguments: [true, false])
  func changedCompanions(isRemoved: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let first = try await store.publish(try await staged(store), of: nil, at: .init(directory: "a"), in: try context())
    try FileManager.default.removeItem(atPath: folder.path("a/x.bin-2"))
    if !isRemoved { try folder.write(Self.foreign, to: "a/x.bin-2") }
    let left = isRemoved ? [:] : ["a/x.bin-2": Self.foreign]
    let moved = try await store.publish(first, of: nil, at: .init(directory: "b", name: "y"), in: try context())
    #expect(moved.companions.map(\.suffix) == [".t.png"])
    #expect(
      try folder.tree()
        == left.merging(["b/y": Self.bytes, "b/y.t.png": Self.companions[".t.png"] ?? []]) { $1 })
    try await store.remove(first)
    try await store.remove(moved)
    #expect(try folder.tree() == left)
  }

  @Test("The companions of a file that another one has replaced are kept with it")
  func companionsOfAReplacedFile() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let file = try await store.publish(try await staged(store), of: nil, at: .init(name: "x.bin"), in: try context())
    let date = try #require(file.modifiedAt)
    try folder.write(Self.bytes, to: "y")
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: folder.path("y"))
    try FileManager.default.removeItem(atPath: folder.path("x.bin"))
    try FileManager.default.moveItem(atPath: folder.path("y"), toPath: folder.path("x.bin"))
    try await store.remove(file)
    #expect(try folder.tree() == Self.files("x.bin"))
  }

  @Test("A staged artifact is removed without its companions, which the next one may have")
  func removingAStagedArtifact() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let artifact = try await staged(store)
    try await store.remove(artifact)
    for file in artifact.companionFiles { #expect(await store.contains(file)) }
    try await store.removePartial(key())
    #expect(try folder.tree().isEmpty)
  }

  @Test("A missing companion fails before anything is placed")
  func aMissingCompanion() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let artifact = try await staged(store)
    try FileManager.default.removeItem(atPath: artifact.companions[1].path)
    let before = try folder.tree()
    await #expect {
      try await store.publish(artifact, of: nil, at: .init(name: "x.bin"), in: try context())
    } throws: { ($0 as? DownloadError)?.code == .storage }
    #expect(try folder.tree() == before)
  }

  // MARK: What is allowed

  @Test(
    "Suffixes that are no ends of names are refused",
    arguments: [
      "", "t.png", ".", "-", "./x", ".a/b", "/", ".a\n", ".a\u{0}", "." + String(repeating: "a", count: 32),
    ])
  func unsafeSuffixes(_ suffix: String) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let artifact = File(try await store.staged([1])).withCompanion(at: "/x", suffix: suffix).artifact
    await #expect {
      try await store.publish(artifact, of: nil, at: .init(), in: try context())
    } throws: { ($0 as? DownloadError)?.code == .processing }
  }

  @Test func tooManyAndEqualSuffixesAreRefused() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let staged = File(try await store.staged([1]))
    let equal = staged.withCompanion(at: "/x", suffix: ".a").withCompanion(at: "/y", suffix: ".A")
    let relative = staged.withCompanion(at: "x", suffix: ".a")
    let many = (0...Artifact.Companion.maximumCount).reduce(staged) { $0.withCompanion(at: "/\($1)", suffix: ".\($1)") }
    for file in [equal, relative, many] {
      await #expect {
        try await store.publish(file.artifact, of: nil, at: .init(), in: try context())
      } throws: { ($0 as? DownloadError)?.code == .processing }
    }
  }

  @Test func notesAreParsed() throws {
    let folder = try TemporaryFolder()
    let status = try FileSystem.system.status(Entry(try folder.write([1, 2], to: "a")))
    let companion = PublishNote.Companion(inode: status.inode, size: 2)
    let note = PublishNote(manner: .atOnce, status: status, target: "a b/c d", companions: [.init(), companion])
    #expect(PublishNote(note.text) == note)
    #expect(note.describes(status, companion: 1))
    #expect(!note.describes(status, companion: 0) && !note.describes(status, companion: 2))
    for text in ["publish2 move 1 2 x", "publish2 move 1 2 3 x", "publish2 move 1 2 3:a x", "publish2 move 1 2 3:4 "] {
      #expect(PublishNote(text) == nil, "\(text)")
    }
  }
}
