public import DownpipeCore
import Foundation

/// A step that calls a closure and records its inputs.
///
/// ```swift
/// let unpack = FakePostProcessor<File, Directory>(name: "Unpack") { file, context in
///   Directory(path: context.workspace ?? "/", name: file.name)
/// }
/// let reverse = FakePostProcessor<File, File>.bytes { $0.reversed() }
/// ```
public final class FakePostProcessor<Input: ArtifactForm, Output: ArtifactForm>: PostProcessor {
  /// The name in the printed pipeline and in events.
  public let name: String
  private let processing: @Sendable (Input, ProcessingContext) async throws -> Output
  private let following: @Sendable (ProcessingContext) -> (any TransferFollower)?
  /// Whether the follower writes to the workspace.
  public let followerWrites: Bool
  private let folders: [String]
  private let seen = Watched<[Artifact]>([])
  private let noted = Watched<[String?]>([])

  /// Creates a step that calls the closure.
  ///
  /// - Parameters:
  ///   - name: The name in the printed pipeline and in events.
  ///   - follower: Returns the follower of a transfer; by default there is none.
  ///   - followerWrites: Whether the follower writes to the workspace.
  ///   - outputFolders: The folders, beside the workspace, in which the output may be.
  ///   - processing: Turns the input into the output.
  public init(
    name: String = "FakePostProcessor",
    follower: @escaping @Sendable (ProcessingContext) -> (any TransferFollower)? = { _ in nil },
    followerWrites: Bool = false,
    outputFolders: [String] = [],
    _ processing: @escaping @Sendable (_ input: Input, _ context: ProcessingContext) async throws -> Output
  ) {
    self.name = name
    following = follower
    self.followerWrites = followerWrites
    folders = outputFolders
    self.processing = processing
  }

  /// The inputs so far, in order.
  public var inputs: [Artifact] { seen.value }
  /// The prior note of each call, in order.
  public var priorNotes: [String?] { noted.value }

  /// Waits until it was called at least `count` times. Returns early when the waiting task is cancelled.
  public func calls(atLeast count: Int) async {
    await seen.wait { $0.count >= count }
  }

  /// Returns the follower that the step was created with.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? { following(context) }

  /// Returns the folders that the step was created with.
  public func outputFolders(in context: ProcessingContext) -> [String] { folders }

  /// Calls the closure.
  public func process(_ input: Input, in context: ProcessingContext) async throws -> Output {
    noted.update { $0.append(context.priorNote) }
    seen.update { $0.append(input.artifact) }
    return try await processing(input, context)
  }
}

extension FakePostProcessor where Input == File, Output == File {
  /// A step that transforms the bytes of a file, on disk or in memory. It keeps the contract of steps: it writes to the
  /// workspace, does not change its input, and responds to cancellation.
  public static func bytes(
    name: String = "FakePostProcessor",
    _ change: @escaping @Sendable ([UInt8]) throws -> [UInt8]
  ) -> FakePostProcessor {
    FakePostProcessor(name: name) { file, context in
      try Task.checkCancellation()
      let changed = try change(try file.artifact.readBytes())
      try Task.checkCancellation()
      var output = file.artifact
      output.size = .known(Int64(changed.count))
      if let workspace = context.workspace {
        let path = "\(workspace)/\(name)-\(DownloadID())"
        do {
          try Data(changed).write(to: URL(filePath: path, directoryHint: .notDirectory))
        } catch {
          throw DownloadError(.storage, "the step's output cannot be written: \(error)", stage: name, cause: error)
        }
        output.location = .path(path)
      } else {
        output.location = .memory(changed)
      }
      return File(output)
    }
  }
}

extension Artifact {
  /// The bytes of a file, from disk or from memory.
  package func readBytes() throws(DownloadError) -> [UInt8] {
    switch location {
    case .memory(let bytes): return bytes
    case .remote(let url): throw DownloadError.elsewhere(url)
    case .path(let path):
      do {
        return [UInt8](try Data(contentsOf: URL(filePath: path, directoryHint: .notDirectory)))
      } catch {
        throw DownloadError(.storage, "\(path) cannot be read: \(error)", cause: error)
      }
    }
  }
}
