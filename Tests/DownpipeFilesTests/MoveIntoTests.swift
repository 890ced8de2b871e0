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
struct MoveIntoTests {
  @Test func theNameOfTheRequestIsPreferred() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("store"))
    let step = MoveInto(folder.path("Movies/new"))
    let plain = try await step.process(try await store.staged(someBytes, name: "film.mkv"), in: try context())
    #expect(plain.path == folder.path("Movies/new/film.mkv"))
    #expect(plain.size == .known(Int64(someBytes.count)))
    #expect(!store.isStaged(plain))
    let named = try await step.process(
      try await store.staged([1], name: "film.mkv"),
      in: try context(destination: .init(directory: "ignored", name: "named.mkv")))
    #expect(named.name == "named.mkv")
    #expect(try folder.tree() == ["Movies/new/film.mkv": someBytes, "Movies/new/named.mkv": [1], "store/": []])
  }

  @Test func movesFoldersAndKeepsBoth() async throws {
    let folder = try TemporaryFolder()
    for number in 0..<2 {
      try folder.makeFolder("work/album")
      _ = try folder.write([UInt8(number)], to: "work/album/a")
      let artifact = Artifact(kind: .directory, location: .path(folder.path("work/album")), name: "album")
      let moved = try await MoveInto(folder.path("to")).process(artifact, in: try context())
      #expect(moved.kind == .directory && moved.name == (number == 0 ? "album" : "album (1)"))
    }
    #expect(try folder.tree() == ["to/album/a": [0], "to/album (1)/a": [1], "work/": []])
  }

  @Test func anArtifactThatIsInTheFolderStays() async throws {
    let folder = try TemporaryFolder()
    for policy in ConflictPolicy.allCases {
      let artifact = Artifact(location: .path(try folder.write([1], to: "x")), name: "x")
      let moved = try await MoveInto(folder.path, onConflict: policy).process(artifact, in: try context())
      #expect(moved.path == folder.path("x"))
    }
    #expect(try folder.tree() == ["x": [1]])
  }

  @Test func aSecondNameOfTheSameFileIsUsed() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1], to: "work/x")
    try folder.makeFolder("to")
    #expect(link(path, folder.path("to/x")) == 0)
    let artifact = Artifact(location: .path(path), name: "x")
    let moved = try await MoveInto(folder.path("to"), onConflict: .replace).process(artifact, in: try context())
    #expect(moved.path == folder.path("to/x"))
    #expect(try folder.tree() == ["to/x": [1], "work/": []])
  }

  @Test func movingSurvivesAnEndAtEachCall() async throws {
    for last in 1... {
      let folder = try TemporaryFolder()
      let artifact = Artifact(location: .path(try folder.write(someBytes, to: "work/x.bin")), name: "x.bin")
      _ = try folder.write([1], to: "to/x.bin")
      let notes = Notes()
      let calls = Calls { number, call, _ in number > last && call != .close ? .fail(EIO) : .proceed }
      _ = try? await MoveInto(folder.path("to"), system: calls.system).process(artifact, in: try context(notes: notes))
      let moved = try await MoveInto(folder.path("to")).process(artifact, in: try context(prior: notes.last))
      #expect(moved.path == folder.path("to/x (1).bin"))
      #expect(try folder.tree() == ["to/x.bin": [1], "to/x (1).bin": someBytes, "work/": []], "\(last)")
      if calls.made.count <= last { return }
    }
  }

  @Test func aFolderWithTheNameIsReported() async throws {
    let folder = try TemporaryFolder()
    let artifact = Artifact(location: .path(try folder.write([1], to: "x")), name: "x")
    await #expect {
      try await MoveInto(folder.path("x")).process(artifact, in: try context())
    } throws: { ($0 as? DownloadError)?.code == .permission }
  }

  @Test func summaryShowsTheFolder() {
    #expect(MoveInto("~/Movies").summary == "~/Movies, keep both")
    #expect(MoveInto("/srv/x", onConflict: .replace).summary == "/srv/x, replace")
  }
}
