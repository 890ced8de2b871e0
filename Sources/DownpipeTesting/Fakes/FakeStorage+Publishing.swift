public import DownpipeCore
import Foundation

extension FakeStorage {
  /// Publishes the bytes of a file at the destination, atomically.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    let (directory, name) = try safePath(destination, defaultName: artifact.name)
    try enter(.publish)
    guard artifact.companions.isEmpty || workspaces != nil else {
      throw DownloadError(
        .processing, "“\(artifact.name)” has companions, which need a folder for workspaces: make the storage with one",
        stage: self.name)
    }
    // The note identifies one publication: after a crash it tells whether that publication succeeded.
    if let note = context.priorNote, state.value.notes.contains(note) {
      return describe(artifact, at: String(note.drop { $0 != " " }.dropFirst()))
    }
    // An artifact that was published before is moved.
    let old = artifact.path.flatMap(relative)
    if let old,
      old == directory + name || state.value.isTaken(directory + name) && hasNumber(old, for: name, in: directory)
    {
      return artifact
    }
    let files = try collect(artifact)
    let suffixes = artifact.companions.map(\.suffix)
    let companions = try artifact.companionFiles.map { try bytes(of: $0) ?? $0.readBytes() }
    let target = try state.update { state throws(DownloadError) in
      // The download replaces its own artifact.
      if let replaced = context.replaces, let own = replaced.path.flatMap(relative), state.published[own] != nil,
        own == directory + name || hasNumber(own, for: name, in: directory),
        suffixes.allSatisfy({ suffix in
          !state.isTaken(own + suffix) || replaced.companions.contains { $0.suffix == suffix }
        })
      {
        return own
      }
      return try state.reserve(directory, name, suffixes, conflict)
    }
    defer { state.update { state in _ = state.reserved.remove(target) } }
    let note = "\(DownloadID()) \(target)"
    try await context.note(note)
    state.update { state in
      state.notes.insert(note)
      if let old { for path in [old] + suffixes.map({ old + $0 }) { state.forget(path) } }
      for (suffix, bytes) in zip(suffixes, companions) { state.published[target + suffix] = bytes }
      if artifact.kind == .directory { state.directories.insert(target) }
      for (path, bytes) in files { state.published[target + path] = bytes }
      state.lastNumber += 1
      state.numbers[target] = state.lastNumber
    }
    return describe(artifact, at: target)
  }

  /// Whether a path is the numbered variant of a name.
  private func hasNumber(_ path: String, for name: String, in directory: String) -> Bool {
    guard conflict == .keepBoth, path.hasPrefix(directory),
      path.hasSuffix(" " + name)
    else { return false }
    return Int(path.dropFirst(directory.count).dropLast(name.count + 1)) != nil
  }

  /// The files of an artifact by their paths relative to it.
  private func collect(_ artifact: Artifact) throws -> [String: [UInt8]] {
    guard artifact.kind == .directory, let root = artifact.path else {
      return ["": try bytes(of: artifact) ?? artifact.readBytes()]
    }
    if let path = relative(root) {
      let files = state.value.published.filter { $0.key.hasPrefix(path + "/") }
      return Dictionary(uniqueKeysWithValues: files.map { (String($0.key.dropFirst(path.count)), $0.value) })
    }
    var files: [String: [UInt8]] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: root) {
      let file = Artifact(location: .path("\(root)/\(path)"), name: path)
      var isDirectory: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: "\(root)/\(path)", isDirectory: &isDirectory)
      if !isDirectory.boolValue { files["/" + path] = try file.readBytes() }
    }
    return files
  }

  private func describe(_ artifact: Artifact, at target: String) -> Artifact {
    var published = artifact
    published.location = .path("\(root)/\(target)")
    published.name = String(target[(target.lastIndex(of: "/").map(target.index(after:)) ?? target.startIndex)...])
    let (files, number) = (state.value.published, state.value.numbers[target])
    if artifact.kind == .file, let bytes = files[target] { published.size = .known(Int64(bytes.count)) }
    published.identity = number.map { Artifact.Identity(device: 0, inode: $0) }
    published.companions = artifact.companions.compactMap { companion in
      files[target + companion.suffix].map { bytes in
        .init(suffix: companion.suffix, path: "\(root)/\(target)\(companion.suffix)", size: .known(Int64(bytes.count)))
      }
    }
    return published
  }

  /// The folder (with a trailing slash unless it is the root) and the name.
  private func safePath(
    _ destination: DownloadRequest.Destination, defaultName: String
  ) throws(DownloadError) -> (directory: String, name: String) {
    let name = destination.finalName ?? defaultName
    let folders = (destination.directory ?? "").split(separator: "/", omittingEmptySubsequences: true).map(String.init)
    let isSafe =
      !(destination.directory ?? "").hasPrefix("/") && !name.isEmpty && !name.contains("/")
      && (folders + [name]).allSatisfy { $0 != "." && $0 != ".." && !$0.utf8.contains(0) && $0.utf8.count <= 255 }
    guard isSafe else {
      throw DownloadError(
        .unsafePath,
        "“\(destination.directory ?? "")”/“\(name)” is not a path below the root of the storage: use a folder below it",
        stage: self.name)
    }
    return (folders.map { $0 + "/" }.joined(), name)
  }

  /// Throws for the destinations at which publishing would throw.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    _ = try safePath(destination, defaultName: destination.name ?? "file")
  }

  /// Returns whether the artifact is in memory or in a workspace.
  public func isStaged(_ artifact: Artifact) -> Bool {
    guard let path = artifact.path else { return true }
    return workspaces.map { path.hasPrefix($0 + "/") } ?? false
  }

  /// Returns whether the artifact exists with the same size: published, or in a file or folder of a step.
  public func contains(_ artifact: Artifact) async -> Bool {
    guard let current = await current(artifact) else { return false }
    return artifact.size == .unknown || artifact.size == current.size
  }

  /// Returns the artifact with its present size; `nil` if nothing of its kind is at its path.
  public func current(_ artifact: Artifact) async -> Artifact? {
    guard let path = artifact.path else { return nil }
    var current = artifact
    guard let published = relative(path) else {
      guard let found = try? FileManager.default.attributesOfItem(atPath: path),
        found[.type] as? FileAttributeType == (artifact.kind == .file ? .typeRegular : .typeDirectory)
      else { return nil }
      if artifact.kind == .file { current.size = ByteCount((found[.size] as? NSNumber)?.int64Value) }
      return current
    }
    let state = state.value
    guard artifact.kind == .file else { return state.directories.contains(published) ? artifact : nil }
    guard let bytes = state.published[published] else { return nil }
    current.size = .known(Int64(bytes.count))
    return current
  }

  /// Returns the artifact at the destination of the request when the conflict policy is ``Conflict/reuse``.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard conflict == .reuse, request.destination.name != nil else { return nil }
    let (directory, name) = try safePath(request.destination, defaultName: "")
    guard let bytes = state.value.published[directory + name] else { return nil }
    return Artifact(location: .path("\(root)/\(directory)\(name)"), name: name, size: .known(Int64(bytes.count)))
  }

  /// Removes a published artifact and its companions, unless its identity says that another file has its path by now.
  public func remove(_ artifact: Artifact) async throws {
    try enter(.remove)
    guard let path = artifact.path.flatMap(relative) else { return }
    if let identity = artifact.identity, state.value.numbers[path] != identity.inode { return }
    let companions = artifact.companionFiles.compactMap { $0.path.flatMap(relative) }
    state.update { state in for path in companions + [path] { state.forget(path) } }
  }

  /// Returns the path relative to the root, for paths below it.
  public func storedPath(for path: String) -> String { relative(path) ?? path }

  /// Returns the path of a stored path.
  public func path(forStored storedPath: String) throws -> String {
    if storedPath.hasPrefix("/") { return storedPath }
    guard !storedPath.split(separator: "/").contains("..") else {
      throw DownloadError(
        .unsafePath, "the stored path “\(storedPath)” leads out of the root of the storage", stage: name)
    }
    return "\(root)/\(storedPath)"
  }
}
