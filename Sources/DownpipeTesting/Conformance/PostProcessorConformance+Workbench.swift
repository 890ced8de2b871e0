import DownpipeCore
import Foundation

extension PostProcessorConformance {
  /// An input and its workspace, as the engine passes them to a step.
  final class Workbench: Sendable {
    let input: Artifact
    let workspace: String
    private let folder: TemporaryFolder
    private let digests: [FileDigest]
    private let fetch: ProcessingContext.Fetcher?
    private let original: [String: [UInt8]]
    private let notes = Watched<[String]>([])

    init(_ example: PostProcessorConformance.Example) throws {
      folder = try TemporaryFolder()
      digests = example.digests
      fetch = example.fetch
      workspace = folder.path("workspace")
      try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: false)
      input = try example.make(folder)
      original = try Self.files(input)
    }

    func context(
      workspace: String?, again: Bool = false, follower: (any TransferFollower)? = nil
    ) throws -> ProcessingContext {
      let notes = notes
      return ProcessingContext(
        request: try DownloadRequest("https://example.org/\(DownloadID())"), workspace: workspace, digests: digests,
        priorNote: again ? notes.value.last : nil, follower: follower,
        // The example of RFC 9110 §5.6.7.
        lastModified: Date(timeIntervalSince1970: 784_111_777),
        note: { note in notes.update { $0.append(note) } }, fetch: fetch)
    }

    func process(
      _ step: PipelineStep, again: Bool = false, follower: (any TransferFollower)? = nil
    ) async throws -> Artifact {
      try await step.process(input, context(workspace: workspace, again: again, follower: follower))
    }

    /// The step's follower, after it has taken the input; `nil` if it has none.
    func follow(_ step: PipelineStep) throws -> (any TransferFollower)? {
      guard input.kind == .file, let follower = step.follower(try context(workspace: nil)) else { return nil }
      let bytes = try input.readBytes()
      for start in stride(from: 0, to: bytes.count, by: 1000) {
        try follower.take(bytes.span.bytes.extracting(start..<min(bytes.count, start + 1000)))
      }
      return follower
    }

    func expectInputKept() throws {
      let now = try? Self.files(input)
      try expect(now == original, now == nil ? "the input is gone" : "the input was changed")
    }

    /// Truncates an output, like a crash.
    func damage(_ output: Artifact) throws {
      guard output.kind == .file, let path = output.path, path != input.path, path.hasPrefix(workspace + "/") else {
        return
      }
      let bytes = try output.readBytes()
      try Data(bytes.prefix(bytes.count / 2)).write(to: URL(filePath: path, directoryHint: .notDirectory))
    }

    private static func files(_ artifact: Artifact) throws -> [String: [UInt8]] {
      guard artifact.kind == .directory, let root = artifact.path else { return ["": try artifact.readBytes()] }
      var files: [String: [UInt8]] = [:]
      for name in try FileManager.default.subpathsOfDirectory(atPath: root) {
        files[name] = (try? Artifact(location: .path("\(root)/\(name)"), name: name).readBytes()) ?? []
      }
      return files
    }
  }
}
