#if SQLite
  import DownpipeCore
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import Synchronization

  @testable import DownpipeFiles

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A model of the medium: the bytes of each file and the names in each folder at their last flush. At a loss of
  /// power, all other blocks and names are lost or kept at random.
  ///
  /// A call on a descriptor does not name its file, so the model derives it from the previous call of the same thread.
  /// The files of the ledger lose only bytes, since SQLite flushes their names.
  final class Medium: Sendable {
    private struct State {
      /// The flushed bytes, by inode.
      var bytes: [UInt64: [UInt8]] = [:]
      /// The flushed names and their inodes, by the path of the folder.
      var names: [String: [String: UInt64]] = [:]
      var last: [UInt64: (call: FileSystem.Call, path: String)] = [:]
      /// Whether a file without a name was flushed, and its later name.
      var unnamedIsFlushed = false
      var linked: String?
    }

    private static let blockSize = 4096

    /// The folder whose names can be lost.
    private let root: String
    private let ledger: String
    private let published: String
    /// The folder with second names of all files, to restore unlinked ones.
    private let graveyard: String
    private let state = Mutex(State())

    /// - Parameters:
    ///   - root: the folder that contains the store and the published files.
    ///   - published: the folder of published files.
    ///   - ledger: the folder of the ledger.
    ///   - graveyard: an empty folder on the same file system.
    init(root: String, published: String, ledger: String, graveyard: String) {
      self.root = root
      self.published = published
      self.ledger = ledger
      self.graveyard = graveyard
      state.withLock { state in
        for folder in [root] + folders(below: root) { state.names[folder] = names(in: folder) }
        for folder in [ledger, root] { for file in files(below: folder) { keep(file, &state) } }
      }
    }

    // MARK: What is flushed

    /// Called before each call of the storage.
    func willCall(_ call: FileSystem.Call, _ path: String) {
      let thread = UInt64(UInt(bitPattern: pthread_self().hashValue))
      state.withLock { state in
        keepLinked(&state)
        if call == .link, state.unnamedIsFlushed { state.linked = "\(published)/\(path)" }
        switch call {
        case .flush: willFlushFile(after: state.last[thread], &state)
        case .flushFolder: willFlushFolder(after: state.last[thread], &state)
        case .rename, .renameToFree, .unlink, .link: bury()
        default: break
        }
        state.last[thread] = (call, path)
      }
    }

    /// Called before a file of the ledger is flushed.
    func willFlush(file path: String) { state.withLock { keep(path, &$0) } }

    private func willFlushFile(after last: (call: FileSystem.Call, path: String)?, _ state: inout State) {
      let name =
        switch last {
        // Only partials are flushed through a duplicate.
        case (.open, "")?: ".part"
        case (.open, let path)?: path
        // The file that was just written is the one of the step.
        default: "/inverted"
        }
      let files = files(below: root).filter { $0.hasSuffix(name) }
      if files.isEmpty { state.unnamedIsFlushed = true }
      for file in files { keep(file, &state) }
    }

    /// Records a file that was flushed before it had its name.
    private func keepLinked(_ state: inout State) {
      guard let file = state.linked, inode(file) != nil else { return }
      keep(file, &state)
      state.linked = nil
      state.unnamedIsFlushed = false
    }

    private func willFlushFolder(after last: (call: FileSystem.Call, path: String)?, _ state: inout State) {
      let folder = if case (.open, let path)? = last { path } else { published }
      state.names[folder] = names(in: folder)
    }

    private func keep(_ path: String, _ state: inout State) {
      guard let inode = inode(path)?.number, let bytes = FileManager.default.contents(atPath: path) else { return }
      state.bytes[inode] = [UInt8](bytes)
    }

    private func bury() {
      for file in files(below: root) {
        guard let inode = inode(file)?.number else { continue }
        _ = link(file, "\(graveyard)/\(inode)")
      }
    }

    // MARK: What is lost

    /// Which bytes are lost.
    enum Loss: String, Sendable, CaseIterable {
      /// All bytes that were not flushed.
      case all
      /// A random part of them.
      case some
    }

    /// Changes the disk to a possible state after a loss of power. Call it when no file is open.
    ///
    /// - Returns: what was lost, for messages.
    func lose(_ loss: Loss, by generator: inout SeededGenerator) throws -> [String] {
      bury()
      let state = state.withLock { state in
        keepLinked(&state)
        return state
      }
      var lost: [String] = []
      for folder in [root] + folders(below: root) {
        guard inode(folder) != nil else { continue }  // its own name was lost
        try loseNames(in: folder, flushed: state.names[folder] ?? [:], loss, &generator, &lost)
      }
      for file in files(below: root) + files(below: ledger) where !file.hasSuffix("-shm") {
        guard let number = inode(file)?.number else { continue }
        try loseBytes(of: file, flushed: state.bytes[number] ?? [], loss, &generator, &lost)
      }
      try FileManager.default.removeItem(atPath: graveyard)
      return lost
    }

    private func loseNames(
      in folder: String, flushed: [String: UInt64], _ loss: Loss, _ generator: inout SeededGenerator,
      _ lost: inout [String]
    ) throws {
      let present = names(in: folder)
      for name in Set(present.keys).union(flushed.keys).sorted() where present[name] != flushed[name] {
        if loss == .some, Bool.random(using: &generator) { continue }
        let path = folder + "/" + name
        lost.append("\(name) \(present[name] == nil ? "is back" : "is gone")")
        if present[name] != nil { try FileManager.default.removeItem(atPath: path) }
        guard let inode = flushed[name] else { continue }
        // Restored folders are empty, since their contents were removed first.
        if link("\(graveyard)/\(inode)", path) != 0 { mkdir(path, 0o777) }
      }
    }

    private func loseBytes(
      of file: String, flushed: [UInt8], _ loss: Loss, _ generator: inout SeededGenerator, _ lost: inout [String]
    ) throws {
      let present = [UInt8](FileManager.default.contents(atPath: file) ?? Data())
      guard present != flushed else { return }
      var left = flushed
      if loss == .some {
        // The size can reach the medium before the bytes.
        let sizes = [min(flushed.count, present.count), max(flushed.count, present.count)]
        let size = Bool.random(using: &generator) ? sizes[0] : sizes[1]
        left += [UInt8](repeating: 0, count: max(0, size - left.count))
        left.removeLast(left.count - size)
        for start in stride(from: 0, to: min(size, present.count), by: Self.blockSize)
        where Bool.random(using: &generator) {
          let block = start..<min(start + Self.blockSize, size, present.count)
          left.replaceSubrange(block, with: present[block])
        }
      }
      lost.append("\(file.split(separator: "/").last ?? "") has \(left.count) of \(present.count) bytes")
      try Self.overwrite(file, with: left)
    }

    /// Replaces the bytes of a file and keeps its inode.
    static func overwrite(_ file: String, with bytes: [UInt8]) throws {
      let handle = try FileHandle(forWritingTo: URL(filePath: file))
      defer { try? handle.close() }
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: bytes)
    }

    // MARK: Looking

    private func inode(_ path: String) -> (number: UInt64, isFolder: Bool, isFile: Bool)? {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      let kind = status.st_mode & S_IFMT
      return (UInt64(status.st_ino), kind == S_IFDIR, kind == S_IFREG)
    }

    /// Skips symbolic links, such as claims.
    private func names(in folder: String) -> [String: UInt64] {
      var names: [String: UInt64] = [:]
      for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
        guard let entry = inode(folder + "/" + name), entry.isFile || entry.isFolder else { continue }
        names[name] = entry.number
      }
      return names
    }

    private func below(_ folder: String) -> [String] {
      ((try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []).sorted().map { folder + "/" + $0 }
    }

    private func files(below folder: String) -> [String] { below(folder).filter { inode($0)?.isFile == true } }
    private func folders(below folder: String) -> [String] { below(folder).filter { inode($0)?.isFolder == true } }
  }
#endif
