import DownpipeCore
import DownpipeTesting

let someBytes = DownloadFixtures.pattern(size: 70_000)

func key(_ id: DownloadID = "id", _ generation: Int64 = 1) -> PartialKey { PartialKey(id: id, generation: generation) }

func context() throws -> ProcessingContext {
  ProcessingContext(
    request: try DownloadRequest("https://example.org/a/file.bin", id: "id"), workspace: nil, priorNote: nil,
    wasInterrupted: false
  ) { _ in }
}

extension Storage {
  /// The artifact of a closed partial with these bytes.
  func staged(_ bytes: [UInt8], name: String = "file.bin") async throws -> Artifact {
    let partial = try await openPartial(key(), isNew: false)
    try partial.write(bytes, at: 0)
    try partial.close()
    return try partial.artifact(name: name, mediaType: nil)
  }
}
