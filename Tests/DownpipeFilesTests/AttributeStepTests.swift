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

/// `SetModificationDate`, `SetPermissions` and `Quarantine`.
@Suite(.endsHangs)
struct AttributeStepTests {
  private static let date = Date(timeIntervalSince1970: 784_111_777)

  private func context(
    prior: String? = nil, notes: Notes? = nil, lastModified: Date? = date, durability: Durability = .process,
    url: String = "https://example.org/a/b.txt", headers: HeaderFields = []
  ) throws -> ProcessingContext {
    ProcessingContext(
      request: try DownloadRequest(url, id: "id").with(\.headers, headers), workspace: nil, priorNote: prior,
      durability: durability, lastModified: lastModified
    ) { notes?.keep($0) }
  }

  private func status(_ path: String) throws -> FileStatus { try FileSystem.system.status(Entry(path)) }

  /// A published file, as its step describes it.
  private func published(_ folder: TemporaryFolder, _ name: String = "x") throws -> Artifact {
    let path = try folder.write([1, 2, 3], to: name)
    return Artifact(
      location: .path(path), name: name, size: .known(3), modifiedAt: try status(path).modifiedAt)
  }

  private func attribute(_ name: String, _ path: String) throws -> String? {
    let file = try OpenFile(reading: path)
    return FileSystem.system.attribute(file.descriptor, name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Whether the folder of the tests is on a file system with extended attributes.
  static let hasAttributes: Bool = {
    guard let folder = try? TemporaryFolder(), let path = try? folder.write([1], to: "x"),
      let file = try? OpenFile(reading: path)
    else { return false }
    return (try? FileSystem.system.setAttribute(file.descriptor, "user.downpipe", [1])) == true
  }()

  // MARK: SetModificationDate

  @Test(arguments: [Durability.process, .power])
  func aStagedFileGetsTheDate(_ durability: Durability) async throws {
    let folder = try TemporaryFolder()
    let file = File(path: try folder.write([1], to: "x"), name: "x", size: 1)
    let output = try await SetModificationDate().process(file, in: try context(durability: durability))
    #expect(output == file, "nothing is recorded before publication")
    #expect(try status(folder.path("x")).modifiedAt == Self.date)
  }

  @Test func theAccessTimeStays() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1], to: "x")
    var (before, after) = (stat(), stat())
    stat(path, &before)
    _ = try await SetModificationDate().process(File(path: path, name: "x"), in: try context())
    stat(path, &after)
    #if canImport(Glibc)
      #expect(before.st_atim.tv_sec == after.st_atim.tv_sec && before.st_atim.tv_nsec == after.st_atim.tv_nsec)
    #endif
  }

  @Test func aPublishedFileIsRecordedWithTheDate() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let artifact = try published(folder)
    let output = try await SetModificationDate().process(File(artifact), in: try context()).artifact
    #expect(output.modifiedAt == Self.date && output.path == artifact.path)
    #expect(await store.contains(output))
    #expect(await !store.contains(artifact))
  }

  @Test("after a crash between the change and its record, the file is still the download's own")
  func theStepRunsAgain() async throws {
    let folder = try TemporaryFolder()
    let artifact = try published(folder)
    let notes = Notes()
    _ = try await SetModificationDate().process(File(artifact), in: try context(notes: notes))
    #expect(notes.all.count == 1)
    let again = try await SetModificationDate().process(File(artifact), in: try context(prior: notes.last))
    #expect(again.artifact.modifiedAt == Self.date)
  }

  @Test("a published file that another program has changed or replaced is left alone")
  func changedFiles() async throws {
    let folder = try TemporaryFolder()
    let artifact = try published(folder)
    let notes = Notes()
    _ = try await SetModificationDate().process(File(artifact), in: try context(notes: notes))
    try FileManager.default.moveItem(atPath: folder.path("x"), toPath: folder.path("kept"))
    try folder.write([4, 5, 6], to: "x")
    let before = try status(folder.path("x")).modifiedAt
    for prior in [nil, notes.last, "mtime1", "publish1 move 1 3 x"] {
      await #expect {
        _ = try await SetModificationDate().process(File(artifact), in: try context(prior: prior))
      } throws: { ($0 as? DownloadError)?.code == .storage }
    }
    #expect(try status(folder.path("x")).modifiedAt == before)
  }

  @Test func aFileThatWasThereBeforeStays() async throws {
    let folder = try TemporaryFolder()
    var artifact = try published(folder)
    artifact.isReused = true
    let before = try status(folder.path("x"))
    let context = try context()
    #expect(try await SetModificationDate().process(File(artifact), in: context).artifact == artifact)
    #expect(try await SetPermissions(0o700).process(File(artifact), in: context).artifact == artifact)
    #expect(try await Quarantine().process(File(artifact), in: context).artifact == artifact)
    let after = try status(folder.path("x"))
    #expect(after.modifiedAt == before.modifiedAt && after.permissions == before.permissions)
    #expect(try attribute("user.xdg.origin.url", folder.path("x")) == nil)
  }

  @Test func withoutADateTheStepIsSkipped() async throws {
    let folder = try TemporaryFolder()
    let file = File(path: try folder.write([1], to: "x"), name: "x")
    let before = try status(folder.path("x")).modifiedAt
    let context = try context(lastModified: nil)
    #expect(!SetModificationDate().isNeeded(in: context))
    #expect(SetModificationDate().isNeeded(in: try self.context()))
    _ = try await SetModificationDate().process(file, in: context)
    #expect(try status(folder.path("x")).modifiedAt == before)
  }

  @Test(arguments: [-86_400.0, 0, 4_102_444_800, 253_402_300_799])
  func unusualDates(_ seconds: Double) async throws {
    let folder = try TemporaryFolder()
    let artifact = try published(folder)
    let date = Date(timeIntervalSince1970: seconds)
    let output = try await SetModificationDate().process(File(artifact), in: try context(lastModified: date))
    // File systems with a smaller range take the nearest time.
    #expect(await FileStore(folder.path).contains(output.artifact))
  }

  @Test func impossibleDatesAreErrors() async throws {
    let folder = try TemporaryFolder()
    for seconds in [Double.infinity, .nan, 1e300] {
      let context = try context(lastModified: Date(timeIntervalSince1970: seconds))
      let artifact = try published(folder)
      await #expect(throws: DownloadError.self) {
        _ = try await SetModificationDate().process(File(artifact), in: context)
      }
    }
  }

  @Test("a symbolic link is not followed: it could lead to another file")
  func links() async throws {
    let folder = try TemporaryFolder()
    let target = try folder.write([1], to: "target")
    let before = try status(target)
    try FileManager.default.createSymbolicLink(atPath: folder.path("x"), withDestinationPath: target)
    let file = File(path: folder.path("x"), name: "x", size: 1)
    let context = try context()
    await #expect(throws: DownloadError.self) { _ = try await SetModificationDate().process(file, in: context) }
    await #expect(throws: DownloadError.self) { _ = try await SetPermissions(0o777).process(file, in: context) }
    await #expect(throws: DownloadError.self) { _ = try await Quarantine().process(file, in: context) }
    #expect(try status(target).modifiedAt == before.modifiedAt && status(target).permissions == before.permissions)
  }

  @Test func filesInMemoryStayAsTheyAre() async throws {
    let file = File(Artifact(location: .memory([1]), name: "x", size: 1))
    #expect(try await SetModificationDate().process(file, in: try context()) == file)
    #expect(try await SetPermissions(0o600).process(file, in: try context()) == file)
    #expect(try await Quarantine().process(file, in: try context()) == file)
  }

  @Test func errorsOfTheSystemAreReported() async throws {
    let folder = try TemporaryFolder()
    let file = File(path: try folder.write([1], to: "x"), name: "x")
    let broken = Calls.failing([.setAttributes], with: EIO)
    for step: any PostProcessor<File, File> in [
      SetModificationDate(system: broken), try SetPermissions(0o600, system: broken), Quarantine(system: broken),
    ] {
      await #expect {
        _ = try await step.process(file, in: try context())
      } throws: { ($0 as? DownloadError)?.code == .storage }
    }
  }

  // MARK: SetPermissions

  @Test(arguments: [0o644, 0o600, 0o755, 0o444, 0o400, 0o777, 0o660])
  func permissions(_ mode: Int) async throws {
    let folder = try TemporaryFolder()
    let artifact = try published(folder)
    let output = try await SetPermissions(mode).process(File(artifact), in: try context()).artifact
    #expect(try status(folder.path("x")).permissions == mode_t(mode))
    #expect(output == artifact)
    #expect(await FileStore(folder.path).contains(output), "its modification time has not changed")
  }

  @Test(
    "bits that give other rights, decimal numbers and unreadable files are refused",
    arguments: [
      0o4755, 0o2755, 0o1777, 0o10644, 644, 755, 600, 777, -1, 0, 0o200, 0o044, .max, .min,
    ])
  func refusedPermissions(_ mode: Int) {
    #expect {
      _ = try SetPermissions(mode)
    } throws: { ($0 as? DownloadError)?.code == .invalidPipeline }
  }

  @Test func fileSystemsWithoutPermissionsKeepTheirs() async throws {
    let folder = try TemporaryFolder()
    let file = File(path: try folder.write([1], to: "x"), name: "x")
    let step = try SetPermissions(0o600, system: Calls.failing([.setAttributes], with: EPERM))
    #expect(try await step.process(file, in: try context()) == file)
  }

  // MARK: Quarantine

  @Test(.enabled(if: hasAttributes, "needs a file system with extended attributes"))
  func originsHaveNoSecrets() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1], to: "x")
    let context = try context(
      url: "https://user:password@Example.org:8080/a%20b/c.txt?token=secret#part",
      headers: ["Referer": "https://me:pw@example.net/page?session=1#x"])
    _ = try await Quarantine().process(File(path: path, name: "x"), in: context)
    #expect(try attribute("user.xdg.origin.url", path) == "https://example.org:8080/a%20b/c.txt")
    #expect(try attribute("user.xdg.referrer.url", path) == "https://example.net/page")
  }

  @Test(
    .enabled(if: hasAttributes, "needs a file system with extended attributes"),
    arguments: [
      "data:text/plain,secret", "https://example.org/" + String(repeating: "a", count: 3000),
    ])
  func someOriginsAreNotWritten(_ url: String) async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1], to: "x")
    let context = try context(url: url, headers: ["Referer": "not a URL"])
    _ = try await Quarantine().process(File(path: path, name: "x"), in: context)
    #expect(try attribute("user.xdg.origin.url", path) == nil)
    #expect(try attribute("user.xdg.referrer.url", path) == nil)
  }

  @Test(
    "file systems without extended attributes, or without room for them, are no error",
    arguments: [
      ENOTSUP, EPERM, ENOSPC, E2BIG, ERANGE,
    ])
  func withoutAttributes(_ code: CInt) async throws {
    let folder = try TemporaryFolder()
    let file = File(path: try folder.write([1], to: "x"), name: "x")
    let output = try await Quarantine(system: Calls.failing([.setAttributes], with: code)).process(file, in: context())
    #expect(output == file)
  }

  // MARK: The contract

  @Test func summaries() throws {
    #expect(SetModificationDate().summary == "as the server states")
    #expect(try SetPermissions(0o644).summary == "0o644" && SetPermissions(0o400).summary == "0o400")
    #expect(Quarantine().summary == "origin and referrer")
  }

  @Test func stepsConform() async throws {
    let first = PostProcessorConformance.Example(Array("bytes".utf8), named: "a.txt", named: "a.txt")
    let second = PostProcessorConformance.Example(Array("other bytes".utf8), named: "b.txt", named: "b.txt")
    for step: any Stage in [SetModificationDate(), try SetPermissions(0o640), Quarantine()] {
      try await PostProcessorConformance(step, first, and: second).run()
    }
  }
}
