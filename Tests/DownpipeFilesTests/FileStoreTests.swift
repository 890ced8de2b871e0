import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct FileStoreTests {
  @Test func nothingIsCreatedBeforeItIsNeeded() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("deep/root"))
    #expect(try folder.tree().isEmpty)
    #expect(try await store.partials() == [])
    try await store.removePartial(key())
    #expect(try folder.tree().isEmpty)
    _ = try await store.staged([1])
    #expect(try folder.tree() == ["deep/root/.downpipe/partials/id.1.part": [1]])
  }

  @Test func deletedFoldersAreCreatedAgain() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("root"))
    for _ in 0..<2 {
      _ = try await store.publish(someBytes, name: "file.bin")
      _ = try await store.workspace(key())
      try FileManager.default.removeItem(atPath: folder.path("root"))
    }
  }

  @Test(.enabled(if: Ground.hasUnnamedFiles, "needs files without a name"))
  func aSmallFileCostsFewCalls() async throws {
    let folder = try TemporaryFolder()
    let calls = Calls()
    let store = FileStore(folder.path, system: calls.system)
    // The folders stay open while a partial is open.
    let open = try await store.openPartial(key("open"), isNew: true)
    _ = try await store.publishHeld([1], directory: "a/b", name: "first.bin")
    let begun = calls.made.count
    let artifact = try await store.publishHeld([1], id: "second", directory: "a/b", name: "file.bin")
    #expect(
      calls.made[begun...] == [
        .openUnnamed, .write, .status,
        // Finishing closes a duplicate, publishing closes the file and its folder.
        .open, .close, .status, .status, .link, .close,
      ])
    #expect(artifact.size == .known(1) && artifact.modifiedAt != nil)
    let published = calls.made.count
    try await store.removePartial(key("second"))
    #expect(calls.made[published...] == [.status, .status])
    try open.close()
    #expect(try folder.tree() == ["a/b/first.bin": [1], "a/b/file.bin": [1]])
  }

  @Test func aFileInPlaceOfTheRootIsReported() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(try folder.write([1], to: "file"))
    await #expect {
      _ = try await store.openPartial(key(), isNew: false)
    } throws: { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .permission && error.message.contains("choose another folder")
    }
    await #expect { _ = try await store.workspace(key()) } throws: { ($0 as? DownloadError)?.code == .permission }
  }

  @Test(arguments: [
    (EACCES, DownloadError.Code.permission), (EROFS, .permission), (ENOSPC, .noSpace), (EMFILE, .tooManyOpenFiles),
  ])
  func rootsThatCannotBeCreatedAreReported(_ number: CInt, _ code: DownloadError.Code) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(
      folder.path("root"), system: Calls.failing([number == EMFILE ? .open : .makeFolder], with: number))
    await #expect {
      _ = try await store.openPartial(key(), isNew: false)
    } throws: { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == code && error.message.contains("/root")
    }
  }

  @Test func linksInPlaceOfPartialsAreNotFollowed() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try await store.staged([1])
    let path = folder.path(".downpipe/partials/id.1.part")
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.path("victim"))
    await #expect(throws: DownloadError.self) { _ = try await store.openPartial(key(), isNew: false) }
    #expect(!FileManager.default.fileExists(atPath: folder.path("victim")))
  }

  @Test func partialsAreListedAndRemoved() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let keys = PartialNameTests.ids.map { key(DownloadID($0), 3) } + [key("a", 4)]
    for key in keys {
      _ = try await store.staged([1], key)
      let workspace = try #require(try await store.workspace(key))
      try FileManager.default.createDirectory(atPath: workspace + "/inner", withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(atPath: workspace + "/up", withDestinationPath: "../..")
    }
    _ = try folder.write([1], to: ".downpipe/partials/notes.txt")
    #expect(Set(try await store.partials() ?? []) == Set(keys.map { StoredPartial(key: $0, size: 1, isInUse: false) }))
    for key in keys { try await store.removePartial(key) }
    #expect(try await store.partials() == [])
    #expect(try folder.tree() == [".downpipe/partials/notes.txt": [1]])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".downpipe/work")).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".downpipe/partials")) == ["notes.txt"])
  }

  @Test func artifactsInTheStoresOwnFoldersAreStaged() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let staged = try await store.staged([1])
    #expect(store.isStaged(staged))
    let workspace = try #require(try await store.workspace(key()))
    #expect(store.isStaged(Artifact(location: .path(workspace + "/x"), name: "x")))
    #expect(store.isStaged(Artifact(location: .memory([1]), name: "x")))
    let published = try await store.publish(staged, of: nil, at: .init(), in: try context())
    #expect(!store.isStaged(published))
    #expect(!store.isStaged(Artifact(location: .path("/elsewhere"), name: "x")))
  }

  @Test func storedPathsAreResolved() throws {
    let root = PathText.join(PathText.home, "downpipe-root")
    let store = FileStore(root)
    for (path, stored) in [
      (root + "/a/b", "a/b"), (root + "/~", "./~"), (root + "/~/x", "./~/x"), (root, "."), (root + "x", nil),
      (PathText.join(PathText.home, "Movies/a"), "~/Movies/a"), ("/srv/a", "/srv/a"), (root + "/a\nb", "a\nb"),
    ] {
      if let stored { #expect(store.storedPath(for: path) == stored) }
      #expect(try store.path(forStored: store.storedPath(for: path)) == path)
    }
    #expect(store.storedPath(for: root + "//a") == "a")
    #expect(try FileStore("/").path(forStored: FileStore("/").storedPath(for: "/a")) == "/a")
  }

  @Test(arguments: ["", "..", "../a", "a/..", "a/../b", "~/../x", "/a/../b", "nul\u{0}"])
  func storedPathsThatLeaveTheRootAreRefused(_ stored: String) {
    #expect {
      try FileStore("/srv/root").path(forStored: stored)
    } throws: { ($0 as? DownloadError)?.code == .unsafePath }
  }

  @Test func containsAndRemove() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let file = try await store.publish(someBytes, name: "file.bin")
    #expect(await store.contains(file))
    #expect(file.size == .known(Int64(someBytes.count)))
    var asFolder = file
    asFolder.kind = .directory
    #expect(await !store.contains(asFolder))
    try await store.remove(file)
    try await store.remove(file)
    #expect(await !store.contains(file))
  }

  /// Issue 8, defects 4 and 13: a file is not the artifact because of its name alone.
  @Test func aChangedFileIsNotTheArtifactAndIsNotRemoved() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let file = try await store.publishHeld(someBytes, name: "x")
    let date = try #require(file.modifiedAt)
    #expect(await store.contains(file))
    var rounded = file
    // The artifact as a ledger stores it.
    rounded.modifiedAt = Date(
      timeIntervalSince1970: (date.timeIntervalSince1970 * 1_000_000).rounded(.down) / 1_000_000)
    #expect(await store.contains(rounded))
    var unknown = file
    unknown.modifiedAt = nil
    try FileManager.default.setAttributes(
      [.modificationDate: date.addingTimeInterval(0.001)], ofItemAtPath: folder.path("x"))
    #expect(await !store.contains(file))
    try await store.remove(file)
    #expect(await store.contains(unknown))
    unknown.size = .known(1)
    #expect(await !store.contains(unknown))
    try await store.remove(unknown)
    // The user moved the file and left a symbolic link.
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: folder.path("x"))
    try FileManager.default.moveItem(atPath: folder.path("x"), toPath: folder.path("moved"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("x"), withDestinationPath: folder.path("moved"))
    #expect(await store.contains(file))
    try await store.remove(file)
    #expect(try folder.tree() == ["x/": [], "moved": someBytes])
    try FileManager.default.removeItem(atPath: folder.path("x"))
    try folder.makeFolder("x")
    try await store.remove(file)
    #expect(await !store.contains(file))
    #expect(try folder.tree() == ["x/": [], "moved": someBytes])
  }

  @Test("What the store has published is removed as this very file, and no other one with its size and time")
  func removesItsOwnFile() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    for isHeld in [true, false] {
      let file = try await isHeld ? store.publishHeld(someBytes, name: "x") : store.publish(someBytes, name: "x")
      try await store.remove(file)
      #expect(await !store.contains(file), "unchanged")
    }
    let file = try await store.publishHeld(someBytes, name: "x")
    let date = try #require(file.modifiedAt)
    // As another machine that shares the folder publishes over it.
    try folder.write(otherBytes, to: "y")
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: folder.path("y"))
    try FileManager.default.removeItem(atPath: folder.path("x"))
    try FileManager.default.moveItem(atPath: folder.path("y"), toPath: folder.path("x"))
    #expect(await store.contains(file), "by its size and time")
    try await store.remove(file)
    #expect(try folder.tree() == ["x": otherBytes])
    var described = file
    described.identity = nil
    #expect(described == file)
    try await store.remove(described)
    #expect(try folder.tree().isEmpty)
  }

  @Test("its name moves with its folder, and is that folder's alone")
  func location() throws {
    let folder = try TemporaryFolder()
    let name = try #require(try FileStore(folder.path("a")).location)
    #expect(try FileStore(folder.path("a")).location == name, "the next opening")
    #expect(try FileStore(folder.path("b")).location != name)
    try FileManager.default.moveItem(atPath: folder.path("a"), toPath: folder.path("c"))
    #expect(try FileStore(folder.path("c")).location == name)
    #expect(try FileStore(folder.path("a")).location != name)
  }

  @Test("it is at the location of its folder only, and looking for it makes nothing")
  func isLocated() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("a"))
    #expect(await !store.isLocated(at: "another"))
    #expect(await store.isLocated(at: nil))
    #expect(!FileManager.default.fileExists(atPath: folder.path("a")))
    let (name, other) = (try FileStore(folder.path("a")).location, try FileStore(folder.path("b")).location)
    #expect(name != nil && other != nil)
    #expect(await store.isLocated(at: name), "another opening has made the name")
    #expect(await !store.isLocated(at: other))
  }

  @Test("a folder that cannot be made is named, with what to do about it")
  func rootsThatCannotBeMade() async throws {
    let folder = try TemporaryFolder()
    func message(_ root: String) -> String? {
      do throws(DownloadError) {
        _ = try FileStore(root).location
        return nil
      } catch { return error.message }
    }
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("unmounted"))
    for root in ["link", "link/root"] {
      #expect(message(folder.path(root))?.hasPrefix("could not make the folder \(folder.path("link")): ") == true)
      #expect(message(folder.path(root))?.contains("it is a link to a folder that does not exist") == true)
    }
    try folder.write([], to: "file")
    #expect(message(folder.path("file/root"))?.contains("a file has the name of a folder in this path") == true)
    #if os(Linux)
      // Others are refused for their permissions.
      guard geteuid() == 0 else { return }
      #expect(
        message("/proc/downpipe/root")
          == "could not make the folder /proc/downpipe: No such file or directory; the file system of /proc makes no "
          + "folders there: choose another folder")
    #endif
  }

  @Test func theStoreItselfIsNeverRemoved() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("root"))
    _ = try await store.staged([1])
    for path in [folder.path("root"), folder.path("root/.downpipe"), folder.path, "/", PathText.home] {
      await #expect {
        try await store.remove(Artifact(kind: .directory, location: .path(path), name: "x"))
      } throws: { ($0 as? DownloadError)?.code == .unsafePath }
    }
    #expect(try await store.partials()?.map(\.key) == [key()])
  }

  @Test func existingFilesAreFoundBeforeTheTransfer() async throws {
    let folder = try TemporaryFolder()
    _ = try folder.write([1, 2, 3], to: "a/named.bin")
    _ = try folder.write([1, 2], to: "from url.bin")
    try folder.makeFolder("folder.bin")
    let store = FileStore(folder.path, onConflict: .reuse)
    func found(_ destination: DownloadRequest.Destination, _ size: Int64? = nil, in store: FileStore) async throws
      -> Artifact?
    {
      try await store.existing(
        for: try DownloadRequest(
          "https://example.org/x/from%20url.bin?q", destination: destination
        ).with(\.expectedSize, ByteCount(size)))
    }
    let named = try #require(try await found(.init(directory: "a", name: "named.bin"), in: store))
    #expect(named.path == folder.path("a/named.bin") && named.size == .known(3))
    #expect(try await found(.init(), 2, in: store)?.path == folder.path("from url.bin"))
    #expect(try await found(.init(), 3, in: store) == nil)
    #expect(try await found(.init(name: "folder.bin"), in: store) == nil)
    #expect(try await found(.init(directory: "missing", name: "x"), in: store) == nil)
    #expect(try folder.contents().contains("missing") == false)
    #expect(try await found(.init(), in: FileStore(folder.path)) == nil)
    await #expect { try await found(.init(name: "../x"), in: store) } throws: {
      ($0 as? DownloadError)?.code == .unsafePath
    }
  }

  @Test func summariesShowTheRoot() {
    #expect(FileStore("~/Downloads").summary == "~/Downloads, keep both")
    #expect(FileStore("/srv/a", onConflict: .reuse, durability: .power).summary.contains("power"))
  }
}

extension FileStoreTests {
  static let impossible: [(String?, String?)] = [
    ("..", nil), ("/tmp", nil), ("a//b", nil), (".", nil), (nil, ".."), (nil, "a/b"), (nil, ""), (nil, "a\u{0}"),
    (".downpipe", nil), (".Downpipe/work", "x"), (nil, ".downpipe"), (nil, String(repeating: "x", count: 256)),
    (String(repeating: "x", count: 256), "a"),
  ]

  @Test(arguments: impossible)
  func unsafeDestinationsAreRefusedBeforeTheTransfer(_ directory: String?, _ name: String?) throws {
    let destination = DownloadRequest.Destination(directory: directory, name: name)
    let error = #expect(throws: DownloadError.self) { try FileStore("/nowhere").check(destination) }
    #expect(error?.code == .unsafePath)
  }
}
