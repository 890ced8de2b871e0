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
    private let add: ProcessingContext.Adder?
    private let original: [String: [UInt8]]
    /// What is beside the workspace before the step runs.
    private let present: Set<String>
    private let notes = Watched<[String]>([])

    init(_ example: PostProcessorConformance.Example) throws {
      folder = try TemporaryFolder()
      digests = example.digests
      fetch = example.fetch
      add = example.add
      workspace = folder.path("workspace")
      try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: false)
      input = try example.make(folder)
      original = try Self.files(input)
      present = Self.entries(of: folder)
    }

    /// The entries of the folder, without those of the workspace.
    private static func entries(of folder: TemporaryFolder) -> Set<String> {
      Set((FileManager.default.subpaths(atPath: folder.path) ?? []).filter { !$0.hasPrefix("workspace/") })
    }

    func context(
      workspace: String?, again: Bool = false, follower: (any TransferFollower)? = nil, announcing: Bool = false
    ) throws -> ProcessingContext {
      let notes = notes
      return ProcessingContext(
        request: try DownloadRequest("https://example.org/\(DownloadID())"), workspace: workspace, digests: digests,
        priorNote: again ? notes.value.last : nil, follower: follower,
        bytesReceived: announcing ? original[""].map { Int64($0.count) } : nil,
        // The example of RFC 9110 §5.6.7.
        lastModified: Date(timeIntervalSince1970: 784_111_777),
        note: { note in notes.update { $0.append(note) } }, fetch: fetch, add: add,
        readBack: announcing ? readBack : nil)
    }

    /// Reads the input once more, for a follower.
    private var readBack: ProcessingContext.ReadBack? {
      guard let bytes = original[""] else { return nil }
      return { offset, buffer in
        buffer.withUnsafeMutableBytes { buffer in
          let rest = bytes.dropFirst(Int(offset)).prefix(buffer.count)
          buffer.copyBytes(from: rest)
          return rest.count
        }
      }
    }

    func process(
      _ step: PipelineStep, again: Bool = false, follower: (any TransferFollower)? = nil
    ) async throws -> Artifact {
      try await step.process(input, context(workspace: workspace, again: again, follower: follower))
    }

    /// How the input is cut into what a follower takes.
    enum Chunks: CaseIterable, Sendable {
      case whole
      /// Also with the boundaries of blocks and headers inside a chunk.
      case even
      /// One byte, two, three …
      case growing

      func size(after count: Int) -> Int {
        switch self {
        case .whole: .max
        case .even: 1000
        case .growing: count + 1
        }
      }
    }

    /// A follower of the step that has taken no bytes; `nil` if it has none.
    func follower(of step: PipelineStep) throws -> (any TransferFollower)? {
      guard input.kind == .file else { return nil }
      return step.follower(try context(workspace: step.followerWrites ? workspace : nil, announcing: true))
    }

    /// Whether the step has a follower for the input.
    func isFollowed(by step: PipelineStep) throws -> Bool {
      let follower = try follower(of: step)
      follower?.discard()
      return follower != nil
    }

    /// The step's follower, after it has taken the input; `nil` if it has none, or if it has refused the bytes, as it may:
    /// it was discarded then, as the engine does.
    ///
    /// - Parameter half: Whether it takes only the first half of the input.
    func follow(
      _ step: PipelineStep, in chunks: Chunks = .even, half: Bool = false
    ) throws -> (any TransferFollower)? {
      guard let follower = try follower(of: step) else { return nil }
      var rest = try input.readBytes()[...]
      if half { rest = rest.prefix(rest.count / 2) }
      var count = 0
      while !rest.isEmpty {
        let chunk = Array(rest.prefix(chunks.size(after: count)))
        do { try follower.take(chunk.span.bytes) } catch {
          follower.discard()
          return nil
        }
        rest = rest.dropFirst(chunk.count)
        count += 1
      }
      return follower
    }

    /// The paths of all entries of the workspace.
    var written: [String] { (FileManager.default.subpaths(atPath: workspace) ?? []).sorted() }

    /// Takes over what a process has left in its workspace that was killed.
    func takeOver(_ other: Workbench) throws {
      try FileManager.default.removeItem(atPath: workspace)
      try FileManager.default.copyItem(atPath: other.workspace, toPath: workspace)
    }

    func expectInputKept() throws {
      let now = try? Self.files(input)
      try expect(now == original, now == nil ? "the input is gone" : "the input was changed")
    }

    func expectNothingLeft() throws {
      let left = Self.entries(of: folder).subtracting(present).sorted()
      try expect(left.isEmpty, "it has left \(left.joined(separator: ", "))")
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
