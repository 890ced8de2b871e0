#if Archive
  import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX

  /// A folder in the making: hidden in a folder of its own in the workspace, renamed when it is complete, and removed
  /// otherwise.
  struct WorkspaceTree: ~Copyable {
    private static let temporaryName = ".unpacking"

    private let system: FileSystem
    private let folder: String
    let temporaryPath: String
    private var isCommitted = false

    /// Makes an empty folder, after removing what an earlier run left.
    ///
    /// - Parameters:
    ///   - workspace: The folder of the download's steps; it exists.
    ///   - name: The name of the folder for the output.
    ///   - input: The path of the step's input, which stays as it is.
    init(in workspace: String, folder name: String, beside input: String?, system: FileSystem) throws {
      let first = workspace + "/" + name
      // The input can be a file that an earlier step unpacked.
      let normal = input.map(PathText.normalized)
      let isInside = normal.map { PathText.remainder(of: $0, below: PathText.normalized(first)) != nil } ?? false
      let folder = isInside ? first + "-2" : first
      let temporaryPath = folder + "/" + Self.temporaryName
      try reporting("make the folder", folder) { () throws(SystemError) in
        try FileTree(system: system).remove(Entry(folder))
        try system.makeFolder(Entry(folder))
      }
      do throws(SystemError) {
        try system.makeFolder(Entry(temporaryPath))
      } catch {
        try? system.removeFolder(Entry(folder))
        throw error.downloadError("make the folder", temporaryPath)
      }
      self.system = system
      self.folder = folder
      self.temporaryPath = temporaryPath
    }

    deinit {
      guard !isCommitted else { return }
      try? FileTree(system: system).remove(Entry(folder))
    }

    /// Gives the folder its name. With ``/DownpipeCore/Durability/power``, it is on the disk afterwards with everything
    /// below it.
    ///
    /// - Returns: The path of the folder.
    mutating func commit(as name: String, durability: Durability) throws -> String {
      guard UnpackedName.isComponent(name), name != Self.temporaryName else {
        throw DownloadError(.unsafePath, "“\(name)” is not the name of a folder: give the request a name")
      }
      let path = folder + "/" + name
      try reporting("complete", path) { () throws(SystemError) in
        if durability == .power { try FileTree(system: system).flush(Entry(temporaryPath)) }
        try system.rename(Entry(temporaryPath), to: Entry(path))
        isCommitted = true
        try OpenFolder.flush(above: path, durability, system: system)
        try OpenFolder.flush(above: folder, durability, system: system)
      }
      return path
    }
  }
#endif
