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

@Suite(.endsHangs)
struct PublishTests {
  private func code(_ code: DownloadError.Code) -> (any Error) -> Bool {
    { ($0 as? DownloadError)?.code == code }
  }

  /// The real file system, and one without hard links.
  static let systems: [FileSystem] = [.system, Calls.failing([.link], with: EPERM)]

  private func stagedFolder(_ store: FileStore, _ id: DownloadID = "id") async throws -> Artifact {
    let workspace = try #require(try await store.workspace(key(id)))
    let path = workspace + "/out"
    try FileManager.default.createDirectory(atPath: path + "/inner", withIntermediateDirectories: true)
    try Data([1]).write(to: URL(filePath: path + "/inner/a"))
    try FileManager.default.createSymbolicLink(atPath: path + "/link", withDestinationPath: "/nowhere")
    return Artifact(kind: .directory, location: .path(path), name: "album.v1")
  }

  @Test(arguments: 0..<2)
  func keepBothNumbers(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[system])
    for number: UInt8 in 0..<4 {
      let artifact = try await store.publish([number], directory: "a", name: "x.tar.gz")
      #expect(artifact.name == (number == 0 ? "x.tar.gz" : "x (\(number)).tar.gz"))
      #expect(artifact.path == folder.path("a/" + artifact.name))
    }
    #expect(
      try folder.tree() == ["a/x.tar.gz": [0], "a/x (1).tar.gz": [1], "a/x (2).tar.gz": [2], "a/x (3).tar.gz": [3]])
  }

  @Test(arguments: 0..<2)
  func concurrentDownloadsAreAllKept(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[system])
    let names = try await withThrowingTaskGroup(of: String.self) { group in
      for number: UInt8 in 0..<40 {
        group.addTask { try await store.publish([number], id: DownloadID("\(number)"), name: "same.bin").name }
      }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(names.count == 40)
    let tree = try folder.tree()
    #expect(Set(tree.keys) == names)
    #expect(Set(tree.values.map { $0[0] }) == Set(0..<40))
  }

  @Test func replaceReplaces() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .replace)
    _ = try await store.publish([1, 2, 3], name: "x")
    let second = try await store.publish([4], name: "x")
    #expect(second.size == .known(1))
    #expect(try folder.tree() == ["x": [4]])
  }

  @Test(arguments: ["a symbolic link", "a FIFO"])
  func onlyRegularFilesAreReplaced(_ occupant: String) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .replace)
    let victim = try folder.write([9], to: "victim")
    if occupant == "a FIFO" {
      #expect(mkfifo(folder.path("x"), 0o600) == 0)
    } else {
      try FileManager.default.createSymbolicLink(atPath: folder.path("x"), withDestinationPath: victim)
    }
    let before = try FileSystem.system.status(Entry(folder.path("x")))
    await #expect { try await store.publish([5], name: "x") } throws: { error in
      code(.alreadyExists)(error) && (error as? DownloadError)?.message.contains(occupant) == true
    }
    #expect(try FileSystem.system.status(Entry(folder.path("x"))).isSame(as: before))
    #expect(try folder.read("victim") == [9])
    #expect(try folder.read(".downpipe/partials/id.1.part") == [5], "the bytes are kept")
  }

  @Test(arguments: 0..<2)
  func failKeepsBothFiles(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .fail, system: Self.systems[system])
    _ = try await store.publish([1], name: "x")
    await #expect { try await store.publish([2], name: "x") } throws: { code(.alreadyExists)($0) }
    #expect(try folder.tree() == ["x": [1], ".downpipe/partials/id.1.part": [2]])
  }

  @Test func reuseComparesBytes() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .reuse)
    let first = try await store.publish(someBytes, name: "x.bin")
    let inode = try FileSystem.system.status(Entry(folder.path("x.bin"))).inode
    var again = try await store.publish(someBytes, name: "x.bin")
    #expect(again.isReused && !first.isReused)
    again.isReused = false
    #expect(again == first)
    #expect(try await store.publish(otherBytes, name: "x.bin").name == "x (1).bin")
    #expect(try await store.publish([1], name: "x.bin").name == "x (2).bin")
    #expect(try folder.tree() == ["x.bin": someBytes, "x (1).bin": otherBytes, "x (2).bin": [1]])
    #expect(try FileSystem.system.status(Entry(folder.path("x.bin"))).inode == inode)
  }

  @Test func foldersInPlaceOfFilesAreNeverReplaced() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("x")
    let store = FileStore(folder.path, onConflict: .replace)
    await #expect { try await store.publish([1], name: "x") } throws: { error in
      code(.alreadyExists)(error) && (error as? DownloadError)?.message.contains("a folder cannot be replaced") == true
    }
    _ = try folder.write([1], to: "file")
    let staged = try await stagedFolder(store)
    await #expect {
      try await store.publish(staged, of: nil, at: .init(name: "file"), in: try context())
    } throws: { code(.alreadyExists)($0) }
    #expect(try await FileStore(folder.path).publish([2], name: "x").name == "x (1)")
  }

  @Test func foldersArePublished() async throws {
    let folder = try TemporaryFolder()
    for policy in ConflictPolicy.allCases {
      let store = FileStore(folder.path("\(policy)"), onConflict: policy)
      let first = try await store.publish(try await stagedFolder(store), of: nil, at: .init(), in: try context())
      #expect(first.kind == .directory && first.path == folder.path("\(policy)/album.v1"))
      _ = try folder.write([7], to: "\(policy)/album.v1/old")
      let again = try await stagedFolder(store)
      if policy == .fail {
        await #expect {
          try await store.publish(again, of: nil, at: .init(), in: try context())
        } throws: { code(.alreadyExists)($0) }
        continue
      }
      let second = try await store.publish(again, of: nil, at: .init(), in: try context())
      #expect(second.name == (policy == .replace ? "album.v1" : "album.v1 (1)"))
      var expected: [String: [UInt8]] = [second.name + "/inner/a": [1], second.name + "/link/": []]
      if policy != .replace {
        expected.merge(["album.v1/inner/a": [1], "album.v1/link/": [], "album.v1/old": [7]]) { $1 }
      }
      let root = policy.rawValue
      let found = try folder.tree().filter { $0.key.hasPrefix("\(policy)/") && !$0.key.contains(".downpipe") }
      #expect(found == Dictionary(uniqueKeysWithValues: expected.map { ("\(policy)/" + $0.key, $0.value) }), "\(root)")
      try await store.remove(second)
      #expect(await !store.contains(second))
    }
  }

  @Test(arguments: [
    ("..", "x"), ("/tmp", "x"), ("a//b", "x"), ("a/../..", "x"), (".", "x"), (nil, ".."), (nil, "."), (nil, "a/b"),
    (nil, "/x"), (nil, ""), (nil, "a\u{0}"), ("a\u{0}", "x"), (".downpipe", "x"), (".Downpipe/work", "x"),
    (nil, ".downpipe"), (nil, String(repeating: "x", count: 256)),
  ])
  func unsafeDestinationsAreRefused(_ directory: String?, _ name: String) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    await #expect {
      try await store.publish([1], directory: directory, name: name)
    } throws: { code(.unsafePath)($0) }
    #expect(try folder.tree() == [".downpipe/partials/id.1.part": [1]])
  }

  @Test(arguments: ["link", "link/sub", "inside/link"])
  func linksBelowTheRootAreNotFollowed(_ directory: String) async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("outside/sub")
    try folder.makeFolder("root/inside")
    for link in ["root/link", "root/inside/link"] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path(link), withDestinationPath: folder.path("outside"))
    }
    let store = FileStore(folder.path("root"))
    await #expect {
      try await store.publish([1], directory: directory, name: "x")
    } throws: { code(.unsafePath)($0) }
    #expect(try folder.tree().keys.allSatisfy { !$0.hasPrefix("outside/") || $0 == "outside/sub/" })
    await #expect {
      try await FileStore(folder.path("root"), onConflict: .reuse).existing(
        for: DownloadRequest("http://a/b", destination: .init(directory: directory, name: "x")))
    } throws: { code(.unsafePath)($0) }
  }

  @Test func aRootMayBeASymbolicLink() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("real")
    try FileManager.default.createSymbolicLink(atPath: folder.path("root"), withDestinationPath: folder.path("real"))
    let artifact = try await FileStore(folder.path("root")).publish([1], directory: "a", name: "x")
    #expect(artifact.path == folder.path("root/a/x"))
    #expect(try folder.read("real/a/x") == [1])
  }

  @Test func filesInPlaceOfFoldersAreReported() async throws {
    let folder = try TemporaryFolder()
    _ = try folder.write([1], to: "a")
    await #expect {
      try await FileStore(folder.path).publish([1], directory: "a/b", name: "x")
    } throws: { code(.permission)($0) }
  }

  @Test func artifactsInMemoryAreWritten() async throws {
    let folder = try TemporaryFolder()
    let artifact = Artifact(location: .memory(someBytes), name: "x")
    for durability in [Durability.process, .power] {
      let store = FileStore(folder.path, durability: durability)
      #expect(store.isStaged(artifact))
      #expect(!store.isStaged(try await store.publish(artifact, of: nil, at: .init(), in: try context())))
    }
    #expect(try folder.tree() == ["x": someBytes, "x (1)": someBytes])
  }

  @Test func aMissingArtifactIsReported() async throws {
    let folder = try TemporaryFolder()
    await #expect {
      try await FileStore(folder.path).publish(
        Artifact(location: .path(folder.path("gone")), name: "x"), of: nil, at: .init(), in: try context())
    } throws: { code(.storage)($0) }
    try folder.makeFolder("wrong")
    await #expect {
      try await FileStore(folder.path).publish(
        Artifact(location: .path(folder.path("wrong")), name: "x"), of: nil, at: .init(), in: try context())
    } throws: { code(.storage)($0) }
  }

  @Test(.enabled(if: SmallMount.isPossible, "needs the right to mount"), arguments: ConflictPolicy.allCases)
  func artifactsAreCopiedToAnotherFileSystem(_ policy: ConflictPolicy) async throws {
    let folder = try TemporaryFolder()
    let mount = try SmallMount(folder.path("root/other"))
    defer { mount.unmount() }
    for durability in [Durability.process, .power] {
      let store = FileStore(folder.path("root"), onConflict: policy, durability: durability)
      let file = try await store.staged(someBytes)
      let date = try #require(FileManager.default.attributesOfItem(atPath: file.path ?? "")[.modificationDate] as? Date)
      let name = "x-\(durability)"
      let published = try await store.publish(
        file, of: nil, at: .init(directory: "other", name: name), in: try context())
      #expect(published.path == mount.path + "/" + name)
      let kept = try FileManager.default.attributesOfItem(atPath: mount.path + "/" + name)[.modificationDate] as? Date
      #expect(abs(try #require(kept).timeIntervalSince(date)) < 0.001)
      let album = try await store.publish(
        try await stagedFolder(store), of: nil, at: .init(directory: "other", name: name + "-album"), in: try context())
      #expect(try folder.read("root/other/\(name)-album/inner/a") == [1])
      try await store.remove(album)
    }
    #expect(try folder.tree() == ["root/other/x-process": someBytes, "root/other/x-power": someBytes])
    // An artifact that does not fit leaves nothing, and stays where it is.
    let store = FileStore(folder.path("root"), onConflict: policy)
    let large = try await store.staged([UInt8](repeating: 1, count: 2 << 20))
    await #expect {
      try await store.publish(large, of: nil, at: .init(directory: "other", name: "large"), in: try context())
    } throws: { code(.noSpace)($0) }
    #expect(await store.contains(large))
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: mount.path)) == ["x-process", "x-power"])
  }

  @Test(arguments: [FileSystem.Call.link, .makeFolder], [true, false])
  func aFolderRemovedDuringPublishingIsCreatedAgain(_ before: FileSystem.Call, _ isHeld: Bool) async throws {
    let folder = try TemporaryFolder()
    let root = folder.path("root")
    let isRemoved = Atomic(false)
    let calls = Calls { _, call, path in
      // Removing the last file of another download removes its folders.
      if call == before, path == (call == .link ? "x" : "b"), !isRemoved.exchange(true, ordering: .relaxed) {
        try? FileManager.default.removeItem(atPath: root + "/a")
      }
      return .proceed
    }
    let store = FileStore(root, system: calls.system)
    let published =
      isHeld
      ? try await store.publishHeld([1], directory: "a/b", name: "x")
      : try await store.publish([1], directory: "a/b", name: "x")
    #expect(published.path == root + "/a/b/x")
    let wasRemoved = isRemoved.load(ordering: .relaxed)
    #expect(wasRemoved)
    #expect(try folder.read("root/a/b/x") == [1])
  }

  @Test(
    "a network file system that repeats a call finds the result of the first one",
    arguments: [FileSystem.Call.link, .renameToFree])
  func repeatedCalls(_ repeated: FileSystem.Call) async throws {
    for isFolder in repeated == .link ? [false] : [false, true] {
      let folder = try TemporaryFolder()
      let isRepeated = Atomic(false)
      let calls = Calls { _, call, _ in
        if call == .link, repeated != .link { return .fail(EPERM) }
        if call == repeated, !isRepeated.exchange(true, ordering: .relaxed) { return .makeAndFail(EEXIST) }
        return .proceed
      }
      let store = FileStore(folder.path("root"), system: calls.system)
      let published = try await store.publish(
        try await artifact(in: store, isFolder: isFolder), of: nil, at: .init(name: "x"), in: try context())
      #expect(published.path == folder.path("root/x"))
      #expect(try folder.tree("root") == ["root/x" + (isFolder ? "/new" : ""): [1, 2]])
    }
  }

  @Test("a rename that is reported as failed has not removed the file", arguments: [EIO, ENOENT, ETIMEDOUT])
  func aRenameThatWasMade(_ code: CInt) async throws {
    for isFolder in [false, true] {
      let folder = try TemporaryFolder()
      // An empty file or folder reserves the name.
      let calls = Calls { _, call, path in
        switch call {
        case .link: .fail(EPERM)
        case .renameToFree: .fail(EINVAL)
        case .rename where path == "x": .makeAndFail(code)
        default: .proceed
        }
      }
      let store = FileStore(folder.path("root"), system: calls.system)
      let staged = try await artifact(in: store, isFolder: isFolder)
      let notes = Notes()
      let context = try context(notes: notes)
      await #expect(throws: DownloadError.self) {
        try await store.publish(staged, of: nil, at: .init(name: "x"), in: context)
      }
      let tree = ["root/x" + (isFolder ? "/new" : ""): [1, 2] as [UInt8]]
      #expect(try folder.tree("root") == tree)
      let again = FileStore(folder.path("root"))
      let published = try await again.publish(
        staged, of: nil, at: .init(name: "x"), in: try DownpipeFilesTests.context(prior: notes.last))
      #expect(published.path == folder.path("root/x"))
      #expect(try folder.tree("root") == tree)
    }
  }

  private func artifact(in store: FileStore, isFolder: Bool) async throws -> Artifact {
    guard isFolder else { return try await store.staged([1, 2]) }
    let workspace = try #require(try await store.workspace(key()))
    try FileManager.default.createDirectory(atPath: workspace + "/x", withIntermediateDirectories: true)
    try Data([1, 2]).write(to: URL(filePath: workspace + "/x/new"))
    return Artifact(kind: .directory, location: .path(workspace + "/x"), name: "x")
  }

  @Test func cancelledCopiesLeaveNothing() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Calls.failing([.link, .rename], with: EXDEV))
    let staged = try await store.staged(someBytes)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await store.publish(staged, of: nil, at: .init(), in: try context())
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try folder.tree() == [".downpipe/partials/id.1.part": someBytes])
  }
}
