import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What a step returns is looked at before its input is removed.
@Suite(.endsHangs)
struct StepOutputTests {
  private let bytes = DownloadFixtures.pattern(size: 10_000)
  private let url = URL(string: "https://example.org/file.bin")!

  /// A step that has made a copy before the wrong one, so that its input is not the partial.
  private static let copying = FakePostProcessor<File, File>.bytes(name: "Copying") { $0 }

  private func downloader(_ folder: TemporaryFolder, _ step: some PostProcessor<File, File>) async throws -> Downloader
  {
    try await Downloader {
      FakeSource([url: [.init(bytes)]])
      FileStore(folder.path("store"))
      MemoryLedger()
      FakeRetryPolicy(.giveUp)
      Self.copying
      step
    }
  }

  /// Mistakes that are easily made with a path.
  private static let mistakes: [(String, @Sendable (File, ProcessingContext, TemporaryFolder) throws -> File)] = [
    ("nothing is there", { file, context, _ in File(path: (context.workspace ?? "") + "/missing", name: file.name) }),
    ("a name instead of a path", { file, _, _ in File(path: "output.bin", name: file.name) }),
    (
      "a folder instead of a file",
      { file, context, _ in
        let path = (context.workspace ?? "") + "/folder"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return File(path: path, name: file.name)
      }
    ),
    (
      "a file in the system's folder for temporary files",
      { file, _, folder in File(path: try folder.write([1, 2, 3], to: "elsewhere/output.bin"), name: file.name) }
    ),
    (
      "a way out of the workspace",
      { file, context, folder in
        _ = try folder.write([1, 2, 3], to: "store/output.bin")
        return File(path: (context.workspace ?? "") + "/../../../output.bin", name: file.name)
      }
    ),
    (
      "a symbolic link to the input",
      { file, context, _ in
        let path = (context.workspace ?? "") + "/link"
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: file.path ?? "")
        return File(path: path, name: file.name)
      }
    ),
    (
      "another artifact's kind",
      { file, _, _ in File(Artifact(kind: .directory, location: file.artifact.location, name: "a")) }
    ),
  ]

  @Test("a step that returns a wrong path fails, and its input is kept", arguments: mistakes.indices)
  func wrongPath(_ index: Int) async throws {
    let folder = try TemporaryFolder()
    let (name, mistake) = Self.mistakes[index]
    let isMended = Watched(false)
    let step = FakePostProcessor<File, File>(name: "Wrong") { file, context in
      isMended.value ? file : try mistake(file, context, folder)
    }
    let downloader = try await downloader(folder, step)
    let download = try await downloader.add(url)
    let error = await #expect(throws: DownloadError.self, "\(name)") { try await download.value }
    #expect(error?.code == .processing && error?.stage == "Wrong", "\(name): \(String(describing: error))")
    let input = try #require(step.inputs.first?.path)
    #expect(try Data(contentsOf: URL(filePath: input)) == Data(bytes), "\(name)")
    // The step is mended: it goes on, and nothing is fetched again.
    isMended.update { $0 = true }
    try await download.resume()
    #expect(try await download.value.readBytes() == bytes, "\(name)")
    await downloader.shutdown()
  }

  @Test("a step may return what is in its folders, and nothing else outside of the workspace")
  func declaredFolders() async throws {
    struct Moving: PostProcessor {
      let folder: String
      func outputFolders(in context: ProcessingContext) -> [String] { [folder + "/"] }
      func process(_ file: File, in context: ProcessingContext) async throws -> File {
        let target = "\(folder)/./\(file.name)"
        try FileManager.default.copyItem(atPath: try #require(file.path), toPath: target)
        return File(path: target, name: file.name)
      }
    }
    let folder = try TemporaryFolder()
    _ = try folder.write([], to: "films/other")
    let downloader = try await downloader(folder, Moving(folder: folder.path("films")))
    let artifact = try await downloader.add(url).value
    #expect(try artifact.readBytes() == bytes && artifact.path?.hasPrefix(folder.path("films")) == true)
    await downloader.shutdown()
  }

  @Test("another spelling of the right path is the right path", arguments: ["/", "//.//", "/./"])
  func spellings(_ prefix: String) async throws {
    let folder = try TemporaryFolder()
    let step = FakePostProcessor<File, File>(name: "Spelling") { file, context in
      let path = (context.workspace ?? "") + "/output"
      try FileManager.default.copyItem(atPath: file.path ?? "", toPath: path)
      return File(path: prefix + path, name: file.name)
    }
    let downloader = try await downloader(folder, step)
    let artifact = try await downloader.add(url).value
    #expect(try artifact.readBytes() == bytes)
    #expect(artifact.path == folder.path("store/file.bin"))
    await downloader.shutdown()
  }

  /// What steps make of a folder, and where they leave it.
  private enum FolderStep: CaseIterable {
    case withSlash, fileInside, companionIsInput
  }

  @Test("an output that is its input or lies in it is not removed with it", arguments: FolderStep.allCases)
  private func outputInInput(_ kind: FolderStep) async throws {
    let folder = try TemporaryFolder()
    let bytes = bytes
    let making = FakePostProcessor<File, Directory>(name: "Making") { file, context in
      let path = (context.workspace ?? "") + "/folder"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try Data(bytes).write(to: URL(filePath: path + "/film"))
      return Directory(path: path, name: "folder")
    }
    let inPlace = FakePostProcessor<Directory, Directory>(name: "InPlace") { directory, _ in
      Directory(path: (directory.path ?? "") + "/", name: "folder")
    }
    let largest = FakePostProcessor<Directory, File>(name: "Largest") { directory, _ in
      File(path: (directory.path ?? "") + "/film", name: "film")
    }
    let converting = FakePostProcessor<File, File>(name: "Converting") { file, context in
      let path = (context.workspace ?? "") + "/converted"
      try Data([1]).write(to: URL(filePath: path))
      return File(path: path, name: file.name).withCompanion(at: file.path ?? "", suffix: ".orig")
    }
    let (source, store) = (FakeSource([url: [.init(bytes)]]), FileStore(folder.path("store")))
    let downloader =
      switch kind {
      case .withSlash:
        try await Downloader {
          source
          store
          making
          inPlace
        }
      case .fileInside:
        try await Downloader {
          source
          store
          making
          largest
        }
      case .companionIsInput:
        try await Downloader {
          source
          store
          Self.copying
          converting
        }
      }
    let artifact = try await downloader.add(url).value
    let path = try #require(artifact.path)
    let place =
      switch kind {
      case .withSlash: path + "/film"
      case .fileInside: path
      case .companionIsInput: path + ".orig"
      }
    #expect(try Data(contentsOf: URL(filePath: place)) == Data(bytes), "\(kind)")
    await downloader.shutdown()
  }

  @Test("an empty file of one that was not is told, and published")
  func emptyOutput() async throws {
    let folder = try TemporaryFolder()
    let downloader = try await downloader(folder, FakePostProcessor<File, File>.bytes(name: "Empty") { _ in [] })
    let notices = Watched<[DownloadError]>([])
    downloader.noteRefusals { event in
      if case .refused(let error) = event.kind { notices.update { $0.append(error) } }
    }
    #expect(try await downloader.add(url).value.readBytes() == [])
    await downloader.shutdown()
    #expect(notices.value.map(\.stage) == ["Empty"])
    #expect(notices.value.first?.message.contains("10000 bytes") == true)
  }
}
