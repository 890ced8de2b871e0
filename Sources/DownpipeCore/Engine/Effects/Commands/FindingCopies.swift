// Files that runs have published without saving it, such as before their process was killed.
extension Engine {
  nonisolated func copies() async throws -> [StrayCopy] {
    try await checkOpen()
    return try await context.copies()
  }
}

extension EngineContext {
  /// The number of records to read at a time.
  static let page = 1_000

  /// The files of this storage that look like those of downloads that other storages have, but for those that other downloads
  /// have here.
  fileprivate func copies() async throws -> [StrayCopy] {
    var copies: [StrayCopy] = []
    try await forEachPage { for record in $0 { if let copy = await copy(of: record) { copies.append(copy) } } }
    guard !copies.isEmpty else { return [] }
    let found = Set(copies.compactMap(\.artifact.path))
    var owned: Set<String> = []
    try await forEachPage { for record in $0 { owned.formUnion(await paths(of: record, among: found)) } }
    return copies.filter { copy in copy.artifact.path.map { !owned.contains($0) } ?? false }
  }

  /// A file of this storage with the path and the size of a finished download's, which another storage has; `nil` if there is
  /// none. Only downloads that belonged to no location can have got two files.
  private func copy(of record: DownloadRecord) async -> StrayCopy? {
    guard record.phase == .finished, let stored = record.steps.artifact, stored.kind == .file, stored.size != nil,
      stored.location != nil, !stored.isOutside, await !storage.isPlace(of: stored, record),
      var artifact = try? storage.artifact(from: stored), artifact.path != nil
    else { return nil }
    (artifact.modifiedAt, artifact.companions) = (nil, [])
    return await storage.contains(artifact) ? StrayCopy(id: record.id, artifact: artifact) : nil
  }

  /// Those of some paths at which a download has a file in this storage.
  private func paths(of record: DownloadRecord, among found: Set<String>) async -> [String] {
    var paths: [String] = []
    for stored in record.files {
      guard let path = (try? storage.artifact(from: stored))?.path, found.contains(path),
        await storage.isPlace(of: stored, record)
      else { continue }
      paths.append(path)
    }
    return paths
  }
}
