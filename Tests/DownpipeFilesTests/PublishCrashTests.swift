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

/// Publishing ends at each of its calls in turn and runs again with the last note. Then one complete file exists, and
/// nothing else is left.
@Suite(.endsHangs)
struct PublishCrashTests {
  static let newBytes = Array("new bytes".utf8)
  static let oldBytes = Array("old".utf8)
  private var newBytes: [UInt8] { Self.newBytes }
  private var oldBytes: [UInt8] { Self.oldBytes }

  /// The kind of file system.
  enum Ground: String, CaseIterable, Sendable {
    case plain, withoutHardLinks, withoutExclusiveRename, otherFileSystem

    func verdict(_ call: FileSystem.Call, _ path: String) -> FileSystem.Verdict {
      switch self {
      case .plain, .otherFileSystem: .proceed
      case .withoutHardLinks: call == .link ? .fail(EPERM) : .proceed
      case .withoutExclusiveRename: call == .link ? .fail(EPERM) : call == .renameToFree ? .fail(EINVAL) : .proceed
      }
    }
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    var policy: ConflictPolicy
    var kind: Artifact.Kind
    var ground: Ground
    var durability: Durability
    var isTaken: Bool
    var inMemory = false
    var testDescription: String {
      "\(policy) \(kind) \(ground) \(durability) \(isTaken ? "taken" : "free")\(inMemory ? " memory" : "")"
    }
  }

  static let scenarios: [Scenario] = {
    var all: [Scenario] = []
    for policy in ConflictPolicy.allCases {
      for kind in [Artifact.Kind.file, .directory] {
        for ground in Ground.allCases where ground != .otherFileSystem || SmallMount.isPossible {
          for durability in [Durability.process, .power] {
            for isTaken in policy == .fail ? [false] : [false, true] {
              all.append(
                Scenario(policy: policy, kind: kind, ground: ground, durability: durability, isTaken: isTaken))
            }
          }
        }
      }
    }
    return all
  }()

  @Test(arguments: scenarios)
  func publishingSurvivesAnEndAtEachCall(_ scenario: Scenario) async throws {
    for last in 1... {
      let folder = try TemporaryFolder()
      let mount = scenario.ground == .otherFileSystem ? try SmallMount(folder.path("root/there")) : nil
      defer { mount?.unmount() }
      let root = folder.path("root")
      let staged = try await prepare(scenario, folder)
      let before = try folder.tree().filter { !$0.key.contains(".downpipe") }
      let notes = Notes()
      let isDead = Atomic(false)
      let calls = Calls { number, call, path in
        if number > last { isDead.store(true, ordering: .relaxed) }
        // A process that ended makes no calls; the system closes its descriptors.
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
      let survived = try? await dying.publish(staged, of: nil, at: destination, in: dyingContext)
      try checkNothingIsHalfMade(scenario, folder, before, "dead after call \(last)")
      let again = FileStore(
        root, onConflict: scenario.policy, durability: scenario.durability,
        system: Calls { _, call, path in scenario.ground.verdict(call, path) }.system)
      // The result was not recorded, but the file may be published.
      let published = try await again.publish(
        staged, of: nil, at: destination, in: try context(destination: destination, prior: notes.last, notes: notes))
      try check(scenario, folder, before, published, "dead after call \(last)")
      let third = try await again.publish(
        staged, of: nil, at: destination, in: try context(destination: destination, prior: notes.last))
      #expect(third == published, "\(last)")
      if let survived { #expect(survived == published, "\(last)") }
      try check(scenario, folder, before, published, "published a third time, dead after call \(last)")
      // All calls were made, so the run was complete.
      if !isDead.load(ordering: .relaxed) { return }
    }
  }

  private func prepare(_ scenario: Scenario, _ folder: TemporaryFolder) async throws -> Artifact {
    let store = FileStore(folder.path("root"))
    if scenario.isTaken {
      if scenario.kind == .file {
        _ = try folder.write(scenario.policy == .reuse ? newBytes : oldBytes, to: "root/there/x.bin")
      } else {
        _ = try folder.write(oldBytes, to: "root/there/x.bin/old")
      }
    }
    if scenario.kind == .file { return try await store.staged(newBytes, name: "x.bin") }
    let workspace = try #require(try await store.workspace(key()))
    try FileManager.default.createDirectory(atPath: workspace + "/x.bin/inner", withIntermediateDirectories: true)
    try Data(newBytes).write(to: URL(filePath: workspace + "/x.bin/inner/new"))
    return Artifact(kind: .directory, location: .path(workspace + "/x.bin"), name: "x.bin")
  }

  /// Other programs never see a part of an artifact, not even an empty file or folder under its name.
  private func checkNothingIsHalfMade(
    _ scenario: Scenario, _ folder: TemporaryFolder, _ before: [String: [UInt8]], _ when: String
  ) throws {
    // There, only an empty entry can reserve the name.
    if scenario.ground == .withoutExclusiveRename { return }
    let there = folder.path("root/there")
    for name in (try? FileManager.default.contentsOfDirectory(atPath: there)) ?? [] where !name.hasPrefix(".downpipe") {
      let file = "root/there/" + name
      let tree = try folder.tree().filter { $0.key == file || $0.key.hasPrefix(file + "/") }
      let new = [file + (scenario.kind == .file ? "" : "/inner/new"): newBytes]
      #expect(tree == new || (!tree.isEmpty && tree == before.filter { tree[$0.key] != nil }), "\(when): \(name)")
    }
  }

  private func check(
    _ scenario: Scenario, _ folder: TemporaryFolder, _ before: [String: [UInt8]], _ published: Artifact, _ when: String
  ) throws {
    let isNumbered =
      scenario.isTaken && (scenario.policy == .keepBoth || (scenario.policy == .reuse && scenario.kind == .directory))
    let name: String
    if isNumbered {
      name = scenario.kind == .file ? "x (1).bin" : "x.bin (1)"
    } else {
      name = "x.bin"
    }
    #expect(published.name == name, "\(when)")
    #expect(published.path == folder.path("root/there/" + name), "\(when)")
    var expected = isNumbered ? before : [:]
    expected["root/there/" + name + (scenario.kind == .file ? "" : "/inner/new")] = newBytes
    #expect(try folder.tree() == expected, "\(when)")
  }

  @Test func anEmptyFileOfAnotherProgramIsNotReplaced() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let staged = try await store.staged(newBytes)
    let status = try FileSystem.system.status(Entry(staged.path ?? ""))
    _ = try folder.write([], to: "x")
    // By the note the file appears by one call, so an empty file belongs to another program.
    let note = PublishNote(manner: .atOnce, status: status, target: "x").text
    let published = try await store.publish(staged, of: nil, at: .init(name: "x"), in: try context(prior: note))
    #expect(published.name == "x (1)")
  }

  @Test(arguments: ["", "nonsense", "publish1 move 1 2 ../../etc/passwd", "publish1 move 1 2 /etc/passwd"])
  func invalidNotesAreIgnored(_ note: String) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let staged = try await store.staged(newBytes)
    do {
      let published = try await store.publish(staged, of: nil, at: .init(name: "x"), in: try context(prior: note))
      #expect(published.path == folder.path("x"))
    } catch let error as DownloadError {
      #expect(error.code == .unsafePath && note.hasPrefix("publish1"))
    }
  }

  @Test func notesAreParsed() throws {
    let folder = try TemporaryFolder()
    let status = try FileSystem.system.status(Entry(try folder.write([1, 2], to: "a")))
    let note = PublishNote(manner: .claiming, status: status, target: "a b/c d\ne")
    #expect(PublishNote(note.text) == note)
    #expect(note.describes(status))
    #expect(!note.describes(try FileSystem.system.status(Entry(folder.path))))
  }
}
