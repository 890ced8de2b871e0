// What a step has returned is looked at before it is recorded, because its input is removed then.

extension Run {
  /// Checks that a step has returned an artifact of the declared kind that exists, in its workspace or in a folder that
  /// it declares.
  ///
  /// An artifact on another machine counts as there: to ask for it would cost a request for each one.
  /// - Returns: A notice about an output that may not be what was meant; `nil` for any other.
  /// - Throws: ``DownloadError`` with `.processing`.
  func checkOutput(
    _ output: Artifact, of step: PipelineStep, from input: Artifact, in context: ProcessingContext
  ) async throws -> DownloadError? {
    #if SABOTAGE
      if self.context.options.sabotage == .trustsSteps { return nil }
    #endif
    let kind = step.output ?? input.kind
    guard output.kind == kind else {
      throw await refusal(
        of: output, by: step, from: input, "is a \(output.kind.rawValue), but the step declares a \(kind.rawValue)")
    }
    let size: ByteCount
    switch output.location {
    case .remote: return nil
    case .memory(let bytes): size = .known(Int64(bytes.count))
    case .path(let path):
      guard output.location == input.location || isExpected(path, of: step, from: input, in: context) else {
        throw await refusal(
          of: output, by: step, from: input,
          "is not in the workspace: write the output there, or declare its folder with outputFolders(in:)")
      }
      // Only whether it is there: what the step says of its size and time is the storage's affair.
      let described = Artifact(kind: kind, location: output.location, name: output.name)
      guard let found = await storage.current(described) else {
        throw await refusal(
          of: output, by: step, from: input, "is no \(kind.rawValue): return the path that was written")
      }
      size = found.size
    }
    try await checkCompanions(of: output, of: step, from: input, in: context)
    guard kind == .file, input.kind == .file, size == .known(0), let before = input.size.bytes, before > 0 else {
      return nil
    }
    return DownloadError(
      .processing, "\(step.name) has made an empty file of one with \(before) bytes", stage: step.name)
  }

  /// Checks that the companions of an artifact are where they go with it: all in the workspace, or all beside it.
  private func checkCompanions(
    of output: Artifact, of step: PipelineStep, from input: Artifact, in context: ProcessingContext
  ) async throws {
    guard !output.companions.isEmpty else { return }
    try output.checkCompanions()
    let isStaged = storage.isStaged(output)
    for (companion, file) in zip(output.companions, output.companionFiles) {
      let isInPlace =
        isStaged
        ? context.workspace.map { PathComponents(companion.path).isIn($0) } ?? false
        : companion.path == output.path.map { $0 + companion.suffix }
      guard isInPlace else {
        throw await refusal(
          of: file, by: step, from: input,
          isStaged
            ? "is a companion and not in the workspace: write it there"
            : "does not lie beside its artifact: add companions before the artifact is moved")
      }
      // Those of the input were looked at before.
      guard !input.companions.contains(companion) else { continue }
      if await storage.current(file) == nil {
        throw await refusal(
          of: file, by: step, from: input, "is no file: return the path of the companion that was written")
      }
    }
  }

  /// Whether a step may have written to a path.
  private func isExpected(
    _ path: String, of step: PipelineStep, from input: Artifact, in context: ProcessingContext
  ) -> Bool {
    if let workspace = context.workspace, PathComponents(path).isIn(workspace) { return true }
    // What has left the storage is changed where it is.
    if let place = input.path, !storage.isStaged(input), PathComponents(path).isIn(PathComponents(place).folder) {
      return true
    }
    return step.outputFolders(context).contains { PathComponents(path).isIn($0) }
  }

  private func refusal(
    of output: Artifact, by step: PipelineStep, from input: Artifact, _ why: String
  ) async -> DownloadError {
    // A step may have moved its input, which it must not.
    let described = Artifact(kind: input.kind, location: input.location, name: input.name)
    let isKept = if input.path == nil { true } else { await storage.current(described) != nil }
    return DownloadError(
      .processing,
      "\(step.name) has returned \(output.path ?? "an artifact in memory"), which \(why); "
        + (isKept ? "its input is kept" : "its input is gone, and must stay where it is"),
      stage: step.name)
  }
}

extension Artifact {
  /// The artifact and its companions with each path in one spelling, by which they are compared.
  var plainlySpelled: Artifact {
    var artifact = self
    if let path { artifact.location = .path(PathComponents.spelled(path)) }
    for index in companions.indices { artifact.companions[index].path = PathComponents.spelled(companions[index].path) }
    return artifact
  }

  /// Whether the artifact or a companion of it is another one, or lies in it.
  func lies(in other: Artifact) -> Bool {
    guard let folder = other.path else { return false }
    return ([path].compactMap(\.self) + companions.map(\.path)).contains { PathComponents($0).isIn(folder) }
  }
}

/// The components of an absolute path, compared as text.
private struct PathComponents {
  let components: [Substring]
  let isSafe: Bool

  init(_ path: String) {
    components = path.split(separator: "/").filter { $0 != "." }
    isSafe = path.utf8.first == UInt8(ascii: "/") && !components.contains("..")
  }

  /// A path without empty components and those that change nothing; one that leads up stays as it is.
  static func spelled(_ path: String) -> String {
    let parts = PathComponents(path)
    return parts.isSafe ? "/" + parts.components.joined(separator: "/") : path
  }

  /// The folder that contains the path.
  var folder: String { "/" + components.dropLast().joined(separator: "/") }

  /// Whether the path is a folder or below it.
  func isIn(_ folder: String) -> Bool {
    let folder = PathComponents(folder)
    return isSafe && folder.isSafe && components.starts(with: folder.components)
  }
}
